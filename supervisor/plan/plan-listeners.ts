/** Plans the listeners of a server: API keys, management API, metrics and TLS. */
import { ApiKeys } from '../http/access/api-keys.js';
import { readKeyFile } from '../options/api-key.js';
import { planManagement, type ManagementPlan, planMetrics, type MetricsPlan } from '../options/listeners.js';
import type { ResolvedOptions, ServerOptions } from '../options/resolve.js';
import { OPTIONS } from '../options/table.js';
import { planTls, type TlsPlan } from '../options/tls.js';
import type { TlsListener } from '../options/value-forms.js';

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
