/** Header values with parameters, such as `form-data; name="a"; filename*=UTF-8''b.txt`. */
import { textIn } from './charsets.js';

export interface HeaderValue {
  /** The text before the first parameter, in lower case. */
  readonly value: string;
  /**
   * Parameters by name in lower case. If a name is repeated, the extended form (RFC 5987) wins, otherwise the last one.
   */
  readonly params: ReadonlyMap<string, string>;
}

/** Returns the media type of a Content-Type header, in lower case and without its parameters. */
export function mediaType(contentType: string): string {
  const semicolon = contentType.indexOf(';');
  return (semicolon < 0 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase();
}

const PARAM = /;\s*([^=;\s"*]+)(\*?)\s*=\s*(?:"((?:[^"\\]|\\[^])*)"|([^;\s"]*))/g;

/**
 * Reads the parameters and skips everything else, in time proportional to the length of `header`, which is a few kB at
 * most. @throws Error on an extended form in an unknown charset
 */
export function paramsOf(header: string): HeaderValue {
  const semicolon = header.indexOf(';');
  const value = (semicolon < 0 ? header : header.slice(0, semicolon)).trim().toLowerCase();
  const params = new Map<string, string>();
  const extended = new Set<string>();
  for (const [, name = '', star, quoted, token = ''] of header.matchAll(PARAM)) {
    const key = name.toLowerCase();
    if (star === '*') extended.add(key);
    else if (extended.has(key)) continue;
    const plain = quoted === undefined ? token : quoted.replace(/\\(["\\])/g, '$1');
    params.set(key, star === '*' ? decodeExtended(plain) : plain);
  }
  return { value, params };
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

/** Decodes bytes in a charset, UTF-8 if its name is empty. @throws Error if the charset is not supported */
export function decodeText(bytes: Uint8Array, charset: string): string {
  if (charset === '' || /^utf-?8$/i.test(charset))
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
  try {
    return textIn(charset, bytes);
  } catch (cause) {
    throw new Error(`the charset ${JSON.stringify(charset.slice(0, 40))} is not supported`, { cause });
  }
}
