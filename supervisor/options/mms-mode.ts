/**
 * Other defaults for servers that replace Multi Model Server: a server of a model store without an app, or with a
 * config.properties, listens where Multi Model Server did. With an app, only the management API is added.
 */
import type { ResolvedOptions } from './resolve.js';
import { SECRET_PATTERN } from './secret-names.js';
import type { OptionName, OptionValues } from './table.js';

const MMS_HOST = '127.0.0.1';
const MMS_PORT = 8080;
const MANAGEMENT_PORT = 8081;

export interface ServedAs {
  readonly resolved: ResolvedOptions;
  /** No app is named, and a model store, models of a store or a config.properties is given. */
  readonly isMmsMode: boolean;
}

/** Applies the defaults of this mode where no option was set. `hasMmsConfig`: a config.properties was read. */
export function servedAs(resolved: ResolvedOptions, isAppNamed: boolean, hasMmsConfig: boolean): ServedAs {
  const { modelStore, models } = resolved.options;
  const isManaged = modelStore !== null || models !== null || hasMmsConfig;
  const isMmsMode = isManaged && !isAppNamed;
  const defaults: Partial<OptionValues> = {
    ...(isManaged && { managementPort: MANAGEMENT_PORT }),
    // Multi Model Server prefixes each line of a worker with its model; and models come from other people.
    ...(isMmsMode && {
      host: MMS_HOST,
      port: MMS_PORT,
      logPrefix: 'potassium' as const,
      withholdEnv: SECRET_PATTERN,
    }),
  };
  const unset = Object.entries(defaults).filter(([name]) => !resolved.explicit.has(name as OptionName));
  const options = Object.freeze({ ...resolved.options, ...Object.fromEntries(unset) });
  return { resolved: { ...resolved, options }, isMmsMode };
}
