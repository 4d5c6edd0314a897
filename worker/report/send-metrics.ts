/** Sends what an app has measured, in messages of a bounded size. */
import type { Channel } from '../../protocol/wire/channel.js';
import type { Metric } from '../../protocol/wire/messages.js';

/** Far below what a head may hold; an estimate is good enough. */
const MAX_MESSAGE_BYTES = 128 * 1024;

/** They are in the channel when this returns, before whatever is sent next. */
export function tellMetrics(channel: Channel, metrics: readonly Metric[]): void {
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

/** A sum may be more than a number holds, and the value of an error is not checked: it is told in letters then. */
function sendable(metric: Metric): Metric {
  const { value } = metric;
  return typeof value === 'string' || Number.isFinite(value) ? metric : { ...metric, value: String(value) };
}

/** A character is at most 3 bytes in UTF-8, a number 9 in MessagePack. */
function atMostBytes({ name, value, unit, dimensions, callIds }: Metric): number {
  return 3 * (name.length + String(value).length + unit.length + dimensions.length) + 9 * callIds.length + 32;
}
