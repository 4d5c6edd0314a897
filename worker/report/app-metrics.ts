/**
 * `ctx.metrics`: the values that an app counts and measures. They are checked here, where the author sees the error;
 * the front combines those of all workers. Values of one tick of the event loop leave in one message.
 */
import { isObject } from '../../protocol/values/tensor.js';
import type { Channel } from '../../protocol/wire/channel.js';
import type { Metric } from '../../protocol/wire/messages.js';
import type { AppMetrics, MetricLabels } from '../api/types.js';

/** Values that may wait for the end of the tick; more are sent at once, because an app may measure in a long loop. */
const MOST_WAITING = 1000;

/** A value that waits to be sent; measuring a counter or a gauge again changes it. */
interface Waiting extends Metric {
  value: number;
}

export function appMetrics(channel: Channel): AppMetrics {
  const kinds = new Map<string, OwnMetricKind>();
  const again = new Map<string, Waiting>();
  let waiting: Waiting[] = [];

  const send = (): void => {
    const metrics = waiting;
    if (metrics.length === 0) return;
    waiting = [];
    again.clear();
    sendMetrics(channel, metrics);
    channel.flush();
  };

  const add = (key: string, metric: Waiting): void => {
    if (waiting.length === 0) setImmediate(send);
    waiting.push(metric);
    if (metric.kind !== 'histogram') again.set(key, metric);
    if (waiting.length >= MOST_WAITING) send();
  };

  const measure = (kind: OwnMetricKind, name: string, value: number, labels: MetricLabels = {}): void => {
    assertNamed(name, kind, kinds);
    if (!Number.isFinite(value))
      throw new TypeError(`metric ${shown(name)}: its value is not a finite number, but ${shown(value)}`);
    if (kind === 'counter' && value < 0)
      throw new RangeError(`metric ${shown(name)}: a counter cannot fall: ${value} is below 0`);
    const problem = labelsProblem(labels);
    if (problem !== null) throw new TypeError(`metric ${shown(name)}: ${problem}`);
    kinds.set(name, kind);
    const dimensions = Object.entries(labels)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([label, text]) => `${label}\n${text}`)
      .join('\n');
    const key = `${name}\n${dimensions}`;
    const before = kind === 'histogram' ? undefined : again.get(key);
    if (before === undefined) add(key, { kind, name, value, unit: '', dimensions, callIds: [] });
    else before.value = kind === 'counter' ? before.value + value : value;
  };

  return {
    counter: (name, value = 1, labels) => measure('counter', name, value, labels),
    gauge: (name, value, labels) => measure('gauge', name, value, labels),
    histogram: (name, value, labels) => measure('histogram', name, value, labels),
  };
}

type OwnMetricKind = 'counter' | 'gauge' | 'histogram';

const MOST_METRICS = 100;
const MOST_LABELS = 10;
const MOST_CHARS = 256;

/** Labels that the server adds, or that belong to a kind of metric. */
const TAKEN_LABELS: readonly string[] = ['model', 'version', 'worker', 'le', 'quantile'];

/** @throws RangeError, TypeError if the app's metrics so far, by name, do not allow this one */
function assertNamed(name: string, kind: OwnMetricKind, kinds: ReadonlyMap<string, OwnMetricKind>): void {
  const known = kinds.get(name);
  if (known === kind) return;
  if (known !== undefined) throw new TypeError(`metric ${shown(name)}: it is a ${known}, not a ${kind}`);
  const problem = nameProblem(name);
  if (problem !== null) throw new TypeError(`metric ${shown(name)}: ${problem}`);
  if (kinds.size >= MOST_METRICS)
    throw new RangeError(
      `metric ${shown(name)}: an app may have ${MOST_METRICS} metrics; use labels for values that differ from call to call`,
    );
}

function nameProblem(name: unknown): string | null {
  if (typeof name !== 'string' || !/^[a-zA-Z_]\w*$/.test(name) || name.length > MOST_CHARS)
    return `a name may have up to ${MOST_CHARS} letters, digits and underscores, and must not begin with a digit`;
  if (/^banana_|^__/.test(name)) return 'names that begin with banana_ or __ are reserved';
  if (/_(?:bucket|sum|count)$/.test(name))
    return 'names that end in _bucket, _sum or _count are reserved for histograms';
  return null;
}

function labelsProblem(labels: unknown): string | null {
  if (!isObject(labels)) return 'its labels must be an object such as { language: "en" }';
  const entries = Object.entries(labels);
  if (entries.length > MOST_LABELS) return `it has ${entries.length} labels; ${MOST_LABELS} are allowed`;
  for (const [label, text] of entries) {
    if (!/^[a-zA-Z_]\w*$/.test(label) || label.startsWith('__') || label.length > MOST_CHARS)
      return `${shown(label)} is not a valid label: use letters, digits and underscores, beginning with neither a digit nor __`;
    if (TAKEN_LABELS.includes(label)) return `the label ${shown(label)} is reserved for the server`;
    if (!['string', 'number', 'boolean'].includes(typeof text))
      return `the value of the label ${shown(label)} must be text, a number or a boolean`;
    if (String(text).length > MOST_CHARS || /[\r\n]/.test(String(text)))
      return `the value of the label ${shown(label)} must be one line of up to ${MOST_CHARS} characters`;
  }
  return null;
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 100)) : String(value);
}

/** Maximum estimated bytes of a message, far below the limit of a head, so that an estimate is enough. */
const MAX_MESSAGE_BYTES = 128 * 1024;

/** Queues the metrics in the channel, before any message that is sent later. */
export function sendMetrics(channel: Channel, metrics: readonly Metric[]): void {
  let group: Metric[] = [];
  let bytes = 0;
  for (const metric of metrics.map(sendable)) {
    bytes += atMostBytes(metric);
    if (bytes > MAX_MESSAGE_BYTES && group.length > 0) {
      channel.send({ type: 'metrics', metrics: group });
      group = [];
      bytes = atMostBytes(metric);
    }
    group.push(metric);
  }
  if (group.length > 0) channel.send({ type: 'metrics', metrics: group });
}

/** A sum may exceed the range of numbers, and the value of an error is not checked; both are then sent as text. */
function sendable(metric: Metric): Metric {
  const { value } = metric;
  return typeof value === 'string' || Number.isFinite(value) ? metric : { ...metric, value: String(value) };
}

/** Upper bound of the encoded size: a character is at most 3 bytes in UTF-8, a number 9 in MessagePack. */
function atMostBytes({ name, value, unit, dimensions, callIds }: Metric): number {
  return 3 * (name.length + String(value).length + unit.length + dimensions.length) + 9 * callIds.length + 32;
}
