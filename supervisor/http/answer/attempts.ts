/**
 * Counts how often a client has tried one call: some clients send the same id with every retry. Only what was seen
 * lately is known, so memory stays bounded.
 */

/** How many ids are remembered; a client that retries comes back within seconds. */
const REMEMBERED = 10_000;

export class Attempts {
  readonly #remembered: number;
  /** Attempts by id; the id seen longest ago comes first. */
  readonly #counts = new Map<string, number>();

  constructor(remembered = REMEMBERED) {
    this.#remembered = remembered;
  }

  /** Which attempt this is: 1 if the id is new, or forgotten. */
  count(id: string): number {
    const attempt = (this.#counts.get(id) ?? 0) + 1;
    this.#counts.delete(id); // so that it goes to the end
    this.#counts.set(id, attempt);
    if (this.#counts.size > this.#remembered) this.#forgetOldest();
    return attempt;
  }

  #forgetOldest(): void {
    const [oldest] = this.#counts.keys();
    if (oldest !== undefined) this.#counts.delete(oldest);
  }
}
