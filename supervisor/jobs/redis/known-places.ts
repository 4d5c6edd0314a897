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
}

export class KnownPlaces {
  readonly #byText = new Map<string, Known>();
  /** The newest version of any place. */
  #version = 0;

  get version(): number {
    return this.#version;
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

  /** Returns the model of the place if more jobs wait there now. */
  set(text: string, count: number, version: number): string | null {
    this.#version = Math.max(this.#version, version);
    const known = this.#byText.get(text);
    if (known !== undefined && known.version >= version) return null;
    const place = known?.place ?? placeFrom(text);
    if (count > 0 || known !== undefined) this.#byText.set(text, { place, count, version });
    return count > (known?.count ?? 0) ? place.model : null;
  }

  /** All places of a version. */
  replace(counts: ReadonlyMap<string, number>, version: number): void {
    this.#byText.clear();
    for (const [text, count] of counts) this.#byText.set(text, { place: placeFrom(text), count, version });
    this.#version = version;
  }

  #waiting(): Known[] {
    return [...this.#byText.values()].filter(({ count }) => count > 0);
  }
}
