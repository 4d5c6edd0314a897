/** Plans the listeners of a server: API keys, management API, metrics and TLS. */
import { configError } from '../../protocol/errors.js';
import { ApiKeys } from '../http/access/api-keys.js';
import { isSameAddress, isThisMachine, isUnixSocket, type Address } from '../options/address.js';
import { readKeyFile } from '../options/secrets.js';
import { sourceNameOf, type ResolvedOptions, type ServerOptions } from '../options/resolve.js';
import { OPTIONS, envName, type OptionName } from '../options/table.js';
import { planTls, type TlsPlan } from '../options/tls.js';
import type { TlsListener } from '../options/value-forms.js';

export interface ManagementPlan {
  readonly host: string;
  readonly port: number | string;
  /** The same address as the server's own: one listener serves both. */
  readonly isShared: boolean;
  /** Other machines can reach it, and it needs no key. */
  readonly isOpenToAll: boolean;
}

interface MetricsPlan {
  /** Served on the server's own address. */
  readonly isOnMain: boolean;
  /** A separate address for metrics; null if there is none. */
  readonly listener: Address | null;
}

export interface ListenersPlan {
  readonly keys: ApiKeys;
  readonly managementKeys: ApiKeys;
  /** Null: there is no management API. */
  readonly management: ManagementPlan | null;
  /** Null: there are no metrics. */
  readonly metrics: MetricsPlan | null;
  /** Null: no listener uses TLS. */
  readonly tls: TlsPlan | null;
}

/** `folder`: base of relative paths of key files and certificates. @throws SERVE_CONFIG */
export function planListeners(resolved: ResolvedOptions, folder: string, mayUseTls: boolean): ListenersPlan {
  const { options } = resolved;
  const { keys, managementKeys } = readKeys(options, folder);
  const management = planManagement(resolved, managementKeys.required);
  const metrics = planMetrics(options);
  const isThere = (listener: TlsListener): boolean => isListener(options, listener, management, metrics);
  const tls = mayUseTls ? planTls(resolved, isThere, folder) : null;
  return { keys, managementKeys, management, metrics, tls };
}

/** Warnings about TLS and CORS options that have no effect or only a part of it. */
export function listenerWarnings({ tls }: ListenersPlan, { options, explicit }: ResolvedOptions): string[] {
  const warnings = tls === null || tls.warning === '' ? [] : [tls.warning];
  if (options.corsOrigin !== null) return warnings;
  const idle = (['corsMethods', 'corsHeaders'] as const).filter((name) => options[name] !== null);
  return [
    ...warnings,
    ...idle.map((name) => `${explicit.get(name)}: it has no effect without ${OPTIONS.corsOrigin.flag}`),
  ];
}

/** Reads the keys for calls and for the management API, which uses the same keys by default. @throws SERVE_CONFIG */
function readKeys(
  { apiKey, apiKeyFile, managementKey }: ServerOptions,
  folder: string,
): { keys: ApiKeys; managementKeys: ApiKeys } {
  const fileKeys = apiKeyFile === null ? [] : readKeyFile(apiKeyFile, folder);
  const keys = [...(apiKey ?? []), ...fileKeys];
  return { keys: new ApiKeys(keys), managementKeys: new ApiKeys(managementKey ?? keys) };
}

/**
 * Null if there is no management API. Anyone who reaches it can run any file of the model store, so it is not opened to other
 * machines without a key, unless --management-insecure is given. @throws SERVE_CONFIG
 */
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

/** Whether the listener exists: with an address of its own, or on the main address if `tlsFor` lists `main` too. */
function isListener(
  { tlsFor, metricsPort }: ServerOptions,
  listener: TlsListener,
  management: ManagementPlan | null,
  metrics: MetricsPlan | null,
): boolean {
  const isMainTls = tlsFor.includes('main'); // then everything on the main address uses TLS
  if (listener === 'main') return true;
  if (listener === 'management') return management !== null && (!management.isShared || isMainTls);
  return metrics !== null && (metrics.listener !== null || (metricsPort !== null && isMainTls));
}
