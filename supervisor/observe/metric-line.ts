/** Formats a metric as a line that log parsers for Multi Model Server understand. */
import { hostname } from 'node:os';
import { splitHeaderLines } from '../../protocol/text/headers.js';
import type { Metric } from '../../protocol/wire/messages.js';

/** `Name.Unit:value|#Dimension:value,…|#hostname:…,requestID:…,timestamp:…`; request ids are separated by commas. */
export function metricLine(
  metric: Omit<Metric, 'callIds'> & { readonly requestIds: readonly string[] },
  at: Date,
): string {
  const { name, value, unit, requestIds } = metric;
  const dimensions = splitHeaderLines(metric.dimensions).map((pair) => pair.join(':'));
  const requests = requestIds.length === 0 ? '' : `,requestID:${requestIds.join(',')}`;
  const where = `hostname:${HOSTNAME}${requests},timestamp:${Math.floor(at.getTime() / 1000)}`;
  return `${name}.${unitName(unit)}:${value}|#${dimensions.join(',')}|#${where}`;
}

/** Read once: it costs a system call, and every call may have a line. */
export const HOSTNAME = hostname();

/** Names of units; other units are written as the app gave them. */
const UNIT_NAMES: ReadonlyMap<string, string> = new Map([
  ['', 'unit'],
  ['ms', 'Milliseconds'],
  ['s', 'Seconds'],
  ['percent', 'Percent'],
  ['count', 'Count'],
  ['MB', 'Megabytes'],
  ['GB', 'Gigabytes'],
  ['kB', 'Kilobytes'],
  ['B', 'Bytes'],
]);

function unitName(unit: string): string {
  return UNIT_NAMES.get(unit) ?? unit;
}
