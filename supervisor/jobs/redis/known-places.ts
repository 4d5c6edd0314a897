/**
 * The places at which due jobs wait, as far as this front knows: from the answers to its own scripts, from the news of other
 * fronts, and from a look at all of them each second. May be wrong for a moment; only a pull finds out.
 */
import type { JobTarget, WaitingPlace } from '../job-record.js';
import { placeFrom, takes } from './line.js';

interface Known {
  readonly place: WaitingPlace;
  readonly count: number;
  readonly version: number;
  /** When this front learned it. */
  readonly moment: number;
}

export class KnownPlaces {
  readonly #byText = new Map<string, Known>();
  #lookedAt = NEVER;
  #moment = 0;

  /** The version of the last look: everything up to it is known. */
  get lookedAt(): number {
    return this.#lookedAt;
  }

  places(): WaitingPlace[] {
    return this.#waiting().map(({ place }) => place);
  }

  hasDue(model: string): boolean {
    for (const { place, count } of this.#byText.values()) if (count > 0 && place.model === model) return true;
    return false;
  }

  waiting(target: JobTarget): number {
    let sum = 0;
    for (const { place, count } of this.#byText.values()) if (takes(target, place)) sum += count;
    return sum;
  }

  set(text: string, count: number, version: number): void {
    const known = this.#byText.get(text);
    if (version <= (known?.version ?? this.#lookedAt)) return;
    this.#byText.set(text, { place: known?.place ?? placeFrom(text), count, version, moment: this.moment() });
  }

  /** A new moment, later than all before. */
  moment(): number {
    return (this.#moment += 1);
  }

  /**
   * All places of a version, from a look that was sent at this moment. What was learned since may be newer. What is older
   * goes, even if its version is higher: then this is another Redis, or an emptied one.
   */
  replace(counts: ReadonlyMap<string, number>, version: number, sentAt: number): void {
    for (const [text, known] of [...this.#byText])
      if (known.moment < sentAt || known.version <= version) this.#byText.delete(text);
    for (const [text, count] of counts)
      if (!this.#byText.has(text))
        this.#byText.set(text, { place: placeFrom(text), count, version, moment: sentAt });
    this.#lookedAt = version;
  }

  /** The next look is to tell of all places. */
  forgetLook(): void {
    this.#lookedAt = NEVER;
  }

  #waiting(): Known[] {
    return [...this.#byText.values()].filter(({ count }) => count > 0);
  }
}

const NEVER = -1;
