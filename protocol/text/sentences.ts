/** Parts of messages for people: texts of other programs beside sentences of ours, and the word that was meant. */

/** Returns `text` with exactly one mark at its end, for the end of a message or before another sentence. */
export function asSentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

/** Returns `text` without its final full stop, for a sentence that continues after it. */
export function asClause(text: string): string {
  return text.endsWith('.') && !text.endsWith('...') ? text.slice(0, -1) : text;
}

/**
 * A question that names the one of `words` nearest to `word`, as the next sentence (` Did`) or the end of one (`; did`);
 * empty if none is near. `shown` writes the word as a reader would.
 */
export function didYouMean(
  word: string,
  words: readonly string[],
  start: ' Did' | '; did',
  shown = (close: string): string => close,
): string {
  const close = suggest(word, words);
  return close === null ? '' : `${start} you mean ${shown(close)}?`;
}

/** The closest of `words`, or null if none is within a third of the word's length in edits. */
export function suggest(word: string, words: readonly string[]): string | null {
  let best: string | null = null;
  let bestDistance = Math.max(1, Math.floor(word.length / 3)) + 1;
  for (const candidate of words) {
    if (Math.abs(word.length - candidate.length) >= bestDistance) continue; // the distance is at least the difference in length
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Levenshtein distance, with two neighbours swapped counted as one edit. */
function editDistance(a: string, b: string): number {
  const rows: number[][] = Array.from({ length: a.length + 1 }, (_, i) => [i]);
  const at = (i: number, j: number): number => (rows[i] as number[])[j] as number;
  for (let j = 0; j <= b.length; j += 1) (rows[0] as number[])[j] = j;
  for (let i = 1; i <= a.length; i += 1) {
    for (let j = 1; j <= b.length; j += 1) {
      const changed = a[i - 1] === b[j - 1] ? 0 : 1;
      let distance = Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + changed);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) distance = Math.min(distance, at(i - 2, j - 2) + 1);
      (rows[i] as number[])[j] = distance;
    }
  }
  return at(a.length, b.length);
}
