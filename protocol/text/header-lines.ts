/**
 * Headers as one string, `name\nvalue\nname\nvalue`: cheap to send, and parsed only when they are read. A header cannot
 * contain a line feed (RFC 9110 section 5.5), so nothing needs escaping.
 */

/** Joins `[name, value, name, value]`, the form of Node's `rawHeaders`. */
export function joinHeaderLines(rawHeaders: readonly string[]): string {
  return rawHeaders.join('\n');
}

/** Returns the pairs in the order in which they were sent. */
export function splitHeaderLines(lines: string): [name: string, value: string][] {
  if (lines === '') return [];
  const parts = lines.split('\n');
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < parts.length; i += 2) pairs.push([parts[i] as string, parts[i + 1] as string]);
  return pairs;
}
