/** Joins texts that others have written, with or without a full stop, to sentences of ours. */

/** `text` with one mark at its end, for a text that is the end of a message or has a sentence behind it. */
export function asSentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

/** `text` without the full stop at its end, for a sentence that goes on after it. */
export function asClause(text: string): string {
  return text.endsWith('.') && !text.endsWith('...') ? text.slice(0, -1) : text;
}
