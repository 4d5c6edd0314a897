/** Sends an app's metrics in messages of a bounded size. */
import type { Channel } from '../../protocol/wire/channel.js';
import type { Metric } from '../../protocol/wire/messages.js';

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
