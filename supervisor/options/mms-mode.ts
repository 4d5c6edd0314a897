/**
 * A server of a model store without an app is used like Multi Model Server, and so is one with a config of that server: it
 * listens where that did, unless somebody says otherwise. With an app, only the management API comes with them.
 */
import type { ResolvedOptions } from './resolve.js';
import { SECRET_PATTERN } from './secret-names.js';
import type { OptionName, OptionValues } from './table.js';

const MMS_HOST = '127.0.0.1';
const MMS_PORT = 8080;
const MANAGEMENT_PORT = 8081;

export interface ServedAs {
  readonly resolved: ResolvedOptions;
  /** No app is named, and there is a store, models of one or a config of Multi Model Server. */
  readonly isMmsMode: boolean;
}

/** The options of a server, completed by what a store and the lack of an app mean. `hasMmsConfig`: its file was read. */
export function servedAs(resolved: ResolvedOptions, isAppNamed: boolean, hasMmsConfig: boolean): ServedAs {
  const { modelStore, models } = resolved.options;
  const isManaged = modelStore !== null || models !== null || hasMmsConfig;
  const isMmsMode = isManaged && !isAppNamed;
  const defaults: Partial<OptionValues> = {
    ...(isManaged && { managementPort: MANAGEMENT_PORT }),
    // There, each line of a worker says whose it is; and models are other people's.
    ...(isMmsMode && {
      host: MMS_HOST,
      port: MMS_PORT,
      logPrefix: 'potassium' as const,
      withholdEnv: SECRET_PATTERN,
    }),
  };
  const unsaid = Object.entries(defaults).filter(([name]) => !resolved.explicit.has(name as OptionName));
  const options = Object.freeze({ ...resolved.options, ...Object.fromEntries(unsaid) });
  return { resolved: { ...resolved, options }, isMmsMode };
}
