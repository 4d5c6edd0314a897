/** Where a server shows its metrics. */
import { isSameAddress, type Address } from './address.js';
import type { ServerOptions } from './resolve.js';

export interface MetricsPlan {
  /** On the address of the server itself. */
  readonly isOnMain: boolean;
  /** The address of their own; null without one. */
  readonly listener: Address | null;
}

/** Null: nobody asks for them, and nothing is counted. */
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

/** Which of Multi Model Server's own metrics there are; null: none. */
export function metricsModeOf(
  { metricsMode }: ServerOptions,
  isMmsMode: boolean,
): ServerOptions['metricsMode'] {
  return metricsMode ?? (isMmsMode ? 'log' : null);
}
