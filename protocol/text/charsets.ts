/** Decodes text in the charsets that browsers support, by the names that they accept. */

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
