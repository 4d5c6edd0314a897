/** Text as bytes in the charsets that browsers support, by the names that they accept; and JSON for clients that know ASCII only. */

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

/**
 * Decodes a whole text. With `fatal`, invalid bytes throw; otherwise they become U+FFFD. @throws Error if the charset
 * is not supported
 */
export function textIn(charset: string, bytes: Uint8Array, { fatal = false } = {}): string {
  const decoder = new TextDecoder(charset, { fatal });
  const text = decoder.decode(bytes);
  return decoder.encoding === 'windows-1252' ? text.replace(/[\x80-\x9f]/g, latinLetter) : text;
}

/**
 * The characters of windows-1252 from 0x80 to 0x9f. Node 20 decodes them as control characters; five of them really
 * are.
 */
const LETTERS = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ';

function latinLetter(control: string): string {
  return LETTERS[control.charCodeAt(0) - 0x80] as string;
}

/** Writes characters beyond ASCII (U+0080 and up) as `\uXXXX`; they occur only inside JSON strings. */
export function escapeNonAscii(json: string): string {
  return json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
