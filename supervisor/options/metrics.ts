/** The listeners that serve metrics, and the mode of Multi Model Server's metrics. */
import { isSameAddress, type Address } from './address.js';
import type { ServerOptions } from './resolve.js';

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
