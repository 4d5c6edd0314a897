/** Text in the charsets that browsers know, by the names that they know. */

/** Decodes a whole text. `fatal`: bytes that are no text throw, else they become U+FFFD. @throws Error if the charset is not known */
export function textIn(charset: string, bytes: Uint8Array, { fatal = false } = {}): string {
  const decoder = new TextDecoder(charset, { fatal });
  const text = decoder.decode(bytes);
  return decoder.encoding === 'windows-1252' ? text.replace(/[\x80-\x9f]/g, latinLetter) : text;
}

/** Windows' Latin from 0x80 on. Node 20 takes its letters for control characters; the five bytes that it leaves open are some. */
const LETTERS = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ';

function latinLetter(control: string): string {
  return LETTERS[control.charCodeAt(0) - 0x80] as string;
}
