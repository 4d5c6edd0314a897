/** Joins texts of other programs, which may or may not end in a full stop, with sentences of ours. */

/** Returns `text` with exactly one mark at its end, for the end of a message or before another sentence. */
export function asSentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

/** Returns `text` without its final full stop, for a sentence that continues after it. */
export function asClause(text: string): string {
  return text.endsWith('.') && !text.endsWith('...') ? text.slice(0, -1) : text;
}
