/**
 * `ctx.metrics`: the values that an app counts and measures. They are checked here, where the author sees the error;
 * the front combines those of all workers. Values of one tick of the event loop leave in one message.
 */
import type { Channel } from '../../protocol/wire/channel.js';
import type { Metric } from '../../protocol/wire/messages.js';
import type { AppMetrics, MetricLabels } from '../api/types.js';
import { metricError, type OwnMetricKind } from './metric-rules.js';
import { sendMetrics } from './send-metrics.js';

/** Values that may wait for the end of the tick; more are sent at once, because an app may measure in a long loop. */
const MOST_WAITING = 1000;

/** A value that waits to be sent; measuring a counter or a gauge again changes it. */
interface Waiting extends Metric {
  value: number;
}

export class OwnMetrics implements AppMetrics {
  readonly #channel: Channel;
  readonly #kinds = new Map<string, OwnMetricKind>();
  #waiting: Waiting[] = [];
  readonly #again = new Map<string, Waiting>();

  constructor(channel: Channel) {
    this.#channel = channel;
  }

  counter(name: string, value = 1, labels: MetricLabels = {}): void {
    this.#measure('counter', name, value, labels);
  }

  gauge(name: string, value: number, labels: MetricLabels = {}): void {
    this.#measure('gauge', name, value, labels);
  }

  histogram(name: string, value: number, labels: MetricLabels = {}): void {
    this.#measure('histogram', name, value, labels);
  }

  #measure(kind: OwnMetricKind, name: string, value: number, labels: MetricLabels): void {
    const error = metricError({ kind, name, value, labels }, this.#kinds);
    if (error !== null) throw error;
    this.#kinds.set(name, kind);
    const dimensions = Object.entries(labels)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([label, text]) => `${label}\n${text}`)
      .join('\n');
    const key = `${name}\n${dimensions}`;
    const before = kind === 'histogram' ? undefined : this.#again.get(key);
    if (before === undefined) this.#add(key, { kind, name, value, unit: '', dimensions, callIds: [] });
    else before.value = kind === 'counter' ? before.value + value : value;
  }

  #add(key: string, metric: Waiting): void {
    if (this.#waiting.length === 0) setImmediate(() => this.#send());
    this.#waiting.push(metric);
    if (metric.kind !== 'histogram') this.#again.set(key, metric);
    if (this.#waiting.length >= MOST_WAITING) this.#send();
  }

  #send(): void {
    const metrics = this.#waiting;
    if (metrics.length === 0) return;
    this.#waiting = [];
    this.#again.clear();
    sendMetrics(this.#channel, metrics);
    this.#channel.flush();
  }
}
