/**
 * Where the management API listens. Whoever reaches it can have any file of the store run, so that it is not opened to
 * others without a key unless its operator says so.
 */
import { configError } from '../../protocol/errors.js';
import { isSameAddress, isThisMachine, isUnixSocket } from './address.js';
import { placeOf, type ResolvedOptions } from './resolve.js';
import { envName, type OptionName } from './table.js';

export interface ManagementPlan {
  readonly host: string;
  readonly port: number | string;
  /** On the address of the server itself: one listener serves both. */
  readonly isShared: boolean;
  /** Others reach it, and it asks for no key. */
  readonly isOpenToAll: boolean;
}

/** Null: there is none. @throws SERVE_CONFIG if it would be open to others */
export function planManagement(resolved: ResolvedOptions, hasKey: boolean): ManagementPlan | null {
  const { managementHost, managementPort, managementInsecure, host, port } = resolved.options;
  if (managementPort === null) return null;
  const isShared = isSameAddress({ host, port }, { host: managementHost, port: managementPort });
  const isReachable = isShared || !(isUnixSocket(managementPort) || isThisMachine(managementHost));
  if (isReachable && !hasKey && !managementInsecure) throw openMistake(resolved, isShared);
  return {
    host: isShared ? host : managementHost,
    port: managementPort,
    isShared,
    isOpenToAll: isReachable && !hasKey,
  };
}

function openMistake(resolved: ResolvedOptions, isShared: boolean): Error {
  const [name, what]: [OptionName, string] = isShared
    ? ['managementPort', 'is the address of the server itself']
    : ['managementHost', 'is an address that others reach'];
  return configError(
    `${placeOf(resolved, name)}: ${resolved.options[name]} ${what}, where the management API needs a key, because whoever reaches it can run code here. ` +
      'Give it one (--management-key, or --api-key for all), keep it to this machine (--management-host 127.0.0.1 with a ' +
      `port of its own, or a unix socket), or do without a key (--management-insecure, ${envName('managementInsecure')}=1).`,
  );
}
