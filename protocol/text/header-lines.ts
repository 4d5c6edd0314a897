/**
 * Headers as one string, `name\nvalue\nname\nvalue`: cheap to carry and read only when someone asks.
 * A header can hold no line feed (RFC 9110 section 5.5), so nothing needs escaping.
 */

/** Joins `[name, value, name, value]` as Node's `rawHeaders` gives it. */
export function joinHeaderLines(rawHeaders: readonly string[]): string {
  return rawHeaders.join('\n');
}

/** Pairs in the order they were sent. */
export function splitHeaderLines(lines: string): [name: string, value: string][] {
  if (lines === '') return [];
  const parts = lines.split('\n');
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < parts.length; i += 2) pairs.push([parts[i] as string, parts[i + 1] as string]);
  return pairs;
}
