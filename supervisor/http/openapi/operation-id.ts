/**
 * Makes the names of operations, by which generated clients call them: a verb, what it is about (model, route, version), and
 * the family of the path unless it is the app's own: `callDigits`, `callDigitsV2`.
 */

/** Words are the letters and digits of `about`, without accents; each begins with a capital. */
export function operationIdOf(verb: string, ...about: readonly string[]): string {
  const words = about.flatMap((text) => text.normalize('NFKD').replace(/\p{M}/gu, '').match(WORDS) ?? []);
  return verb + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}

const WORDS = /[A-Za-z0-9]+/g;

/** The names of one document: of several that are alike, the later ones get `_2`, `_3` and so on. */
export class OperationIds {
  readonly #counts = new Map<string, number>();

  /** `id`: without an underscore. */
  unique(id: string): string {
    const count = (this.#counts.get(id) ?? 0) + 1;
    this.#counts.set(id, count);
    return count === 1 ? id : `${id}_${count}`;
  }
}
