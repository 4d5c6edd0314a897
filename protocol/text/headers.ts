/**
 * Headers as text. All of a request travel as one string, `name\nvalue\nname\nvalue`: cheap to send, and parsed only when
 * they are read. A header cannot contain a line feed (RFC 9110 section 5.5), so nothing needs escaping.
 */
import { decodeText } from './charsets.js';

/** Returns the pairs in the order in which they were sent, from Node's `rawHeaders` joined by line feeds. */
export function splitHeaderLines(lines: string): [name: string, value: string][] {
  if (lines === '') return [];
  const parts = lines.split('\n');
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < parts.length; i += 2) pairs.push([parts[i] as string, parts[i + 1] as string]);
  return pairs;
}

/** Returns the media type of a Content-Type header, in lower case and without its parameters. */
export function mediaType(contentType: string): string {
  const semicolon = contentType.indexOf(';');
  return (semicolon < 0 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase();
}

const PARAM = /;\s*([^=;\s"*]+)(\*?)\s*=\s*(?:"((?:[^"\\]|\\[^])*)"|([^;\s"]*))/g;

/**
 * Reads a header's value with parameters, such as `form-data; name="a"; filename*=UTF-8''b.txt`, and skips everything else, in
 * time proportional to the length of `header`, which is a few kB at most. `value`: the text before the first parameter, in lower
 * case. `params`: by name in lower case; if a name is repeated, the extended form (RFC 5987) wins, otherwise the last one.
 * @throws Error on an extended form in an unknown charset
 */
export function paramsOf(header: string): {
  readonly value: string;
  readonly params: ReadonlyMap<string, string>;
} {
  const params = new Map<string, string>();
  const extended = new Set<string>();
  for (const [, name = '', star, quoted, token = ''] of header.matchAll(PARAM)) {
    const key = name.toLowerCase();
    if (star === '*') extended.add(key);
    else if (extended.has(key)) continue;
    const plain = quoted === undefined ? token : quoted.replace(/\\(["\\])/g, '$1');
    params.set(key, star === '*' ? decodeExtended(plain) : plain);
  }
  return { value: mediaType(header), params };
}

/** Decodes `charset'language'percent-encoded`; any other text is returned unchanged. */
function decodeExtended(text: string): string {
  const [, charset, encoded] = /^([^']*)'[^']*'(.*)$/s.exec(text) ?? [];
  if (charset === undefined || encoded === undefined) return text;
  const bytes = encoded.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(parseInt(hex, 16)),
  );
  return decodeText(Buffer.from(bytes, 'latin1'), charset);
}

/**
 * Matches W3C Trace Context 2.2: version, non-zero trace id, non-zero parent id, flags. `ff` is not a version, and only
 * versions after `00` may add fields.
 */
const TRACEPARENT =
  /^(?!ff)(?!00.{54})[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-|$)/;

/** Returns the value of a `traceparent` header; null if it is absent or malformed, as the standard requires. */
export function validTraceparent(value: unknown): string | null {
  return typeof value === 'string' && TRACEPARENT.test(value) ? value : null;
}
