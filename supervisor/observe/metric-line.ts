/** A metric as one line of text, in the form that Multi Model Server's log parsers know. */
import { hostname } from 'node:os';
import { splitHeaderLines } from '../../protocol/text/header-lines.js';
import type { Metric } from '../../protocol/wire/messages.js';

/** `Name.Unit:value|#Dimension:value,…|#hostname:…,requestID:…,timestamp:…`; the requests of several calls stand with commas between them. */
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

/** Asked once: it costs a system call, and there may be a line for every call. */
export const HOSTNAME = hostname();

/** A unit that is not of this table stands as the app wrote it. */
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
