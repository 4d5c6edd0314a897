/**
 * A server of a model store without an app is used like Multi Model Server: it listens where that did, unless somebody
 * says otherwise. With an app, only the management API comes with the store.
 */
import type { ResolvedOptions } from './resolve.js';
import type { OptionName, OptionValues } from './table.js';

const MMS_HOST = '127.0.0.1';
const MMS_PORT = 8080;
const MANAGEMENT_PORT = 8081;

export interface ServedAs {
  readonly resolved: ResolvedOptions;
  /** No app is named, and there is a store or models of one. */
  readonly isMmsMode: boolean;
}

/** The options of a server, completed by what a store and the lack of an app mean. */
export function servedAs(resolved: ResolvedOptions, isAppNamed: boolean): ServedAs {
  const { modelStore, models } = resolved.options;
  const hasStore = modelStore !== null || models !== null;
  const isMmsMode = hasStore && !isAppNamed;
  const defaults: Partial<OptionValues> = {
    ...(hasStore && { managementPort: MANAGEMENT_PORT }),
    ...(isMmsMode && { host: MMS_HOST, port: MMS_PORT }),
  };
  const unsaid = Object.entries(defaults).filter(([name]) => !resolved.explicit.has(name as OptionName));
  const options = Object.freeze({ ...resolved.options, ...Object.fromEntries(unsaid) });
  return { resolved: { ...resolved, options }, isMmsMode };
}
