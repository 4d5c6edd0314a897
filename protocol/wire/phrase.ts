/** The reason phrase beside the status of an answer. */

/** Longest phrase of a status line, in characters. */
export const MAX_PHRASE_CHARS = 200;

/** Characters that HTTP allows in a phrase (RFC 9112 section 4), which Node writes as Latin-1. */
const PHRASE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Whether the text is allowed in a status line; empty means the standard phrase. */
export function isPhrase(text: string): boolean {
  return text.length <= MAX_PHRASE_CHARS && PHRASE.test(text);
}
