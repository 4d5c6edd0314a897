/** Counts the attempts of a call: some clients send the same id with every retry. Old ids are forgotten, to bound memory. */

/** Number of ids that are remembered; clients retry within seconds. */
const REMEMBERED = 10_000;

export class Attempts {
  readonly #remembered: number;
  /** Attempts by id; the id seen longest ago comes first. */
  readonly #counts = new Map<string, number>();

  constructor(remembered = REMEMBERED) {
    this.#remembered = remembered;
  }

  /** Returns the number of this attempt: 1 if the id is new or forgotten. */
  count(id: string): number {
    const attempt = (this.#counts.get(id) ?? 0) + 1;
    this.#counts.delete(id); // moves it to the end
    this.#counts.set(id, attempt);
    if (this.#counts.size > this.#remembered) this.#forgetOldest();
    return attempt;
  }

  #forgetOldest(): void {
    const [oldest] = this.#counts.keys();
    if (oldest !== undefined) this.#counts.delete(oldest);
  }
}
