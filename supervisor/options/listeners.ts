/**
 * The listeners for management and metrics. Anyone who reaches the management API can run any file of the model store, so it
 * is not opened to other machines without a key, unless --management-insecure is given.
 */
import { configError } from '../../protocol/errors.js';
import { isSameAddress, isThisMachine, isUnixSocket, type Address } from './address.js';
import { sourceNameOf, type ResolvedOptions, type ServerOptions } from './resolve.js';
import { envName, type OptionName } from './table.js';

export interface ManagementPlan {
  readonly host: string;
  readonly port: number | string;
  /** The same address as the server's own: one listener serves both. */
  readonly isShared: boolean;
  /** Other machines can reach it, and it needs no key. */
  readonly isOpenToAll: boolean;
}

/** Null if there is no management API. @throws SERVE_CONFIG if it would be open to other machines without a key */
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
    : ['managementHost', 'is an address that other machines can reach'];
  return configError(
    `${sourceNameOf(resolved, name)}: ${resolved.options[name]} ${what}; the management API needs a key there, because anyone who reaches it can run code here. ` +
      'Give it a key (--management-key, or --api-key for all), keep it to this machine (--management-host 127.0.0.1 with a ' +
      `port of its own, or a unix socket), or run it without a key (--management-insecure, ${envName('managementInsecure')}=1).`,
  );
}

export interface MetricsPlan {
  /** Served on the server's own address. */
  readonly isOnMain: boolean;
  /** A separate address for metrics; null if there is none. */
  readonly listener: Address | null;
}

/** Null if metrics are off. */
export function planMetrics({
  metrics,
  metricsHost,
  metricsPort,
  host,
  port,
}: ServerOptions): MetricsPlan | null {
  if (metricsPort === null) return metrics ? { isOnMain: true, listener: null } : null;
  const own = { host: metricsHost, port: metricsPort };
  return isSameAddress({ host, port }, own)
    ? { isOnMain: true, listener: null }
    : { isOnMain: metrics, listener: own };
}

/** The mode of Multi Model Server's own metrics; null if they are off. */
export function metricsModeOf(
  { metricsMode }: ServerOptions,
  isMmsMode: boolean,
): ServerOptions['metricsMode'] {
  return metricsMode ?? (isMmsMode ? 'log' : null);
}
