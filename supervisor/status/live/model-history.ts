/** The samples of one model in the last ten minutes, one per second, in arrays whose size never changes. */
import type { LiveModelHistory, LiveSample } from '../live-types.js';

export const SECONDS_KEPT = 600;

/** Rings of seconds by name; NaN stands for null. 32 bits: seven digits are enough for a chart. */
type Rings = Map<string, Float32Array>;

export class ModelHistory {
  readonly #columns: Rings = new Map();
  /** Calls by error code. There are as many codes as in the table of errors. */
  readonly #errors: Rings = new Map();
  /** Number of seconds so far, dropped ones included. */
  #seconds = 0;

  /** Adds a second; null: it was not measured. `errors`: its calls by error code. */
  add(sample: LiveSample | null, errors: Readonly<Record<string, number>>): void {
    const at = this.#seconds % SECONDS_KEPT;
    note(this.#columns, sample ?? {}, NaN, at);
    note(this.#errors, errors, 0, at);
    this.#seconds += 1;
  }

  /** Returns the seconds that are kept, oldest first. */
  describe(): Omit<LiveModelHistory, 'key'> {
    const errors = Object.entries(this.#inOrder(this.#errors));
    return {
      columns: this.#inOrder(this.#columns) as LiveModelHistory['columns'],
      errors: Object.fromEntries(errors.filter(([, counts]) => counts.some((count) => count !== 0))),
    };
  }

  /** A plain loop: a viewer of 20 models gets 170,000 numbers, and Array.from takes five times as long. */
  #inOrder(rings: Rings): Record<string, (number | null)[]> {
    const length = Math.min(this.#seconds, SECONDS_KEPT);
    const first = this.#seconds - length;
    const columns: Record<string, (number | null)[]> = {};
    for (const [name, ring] of rings) {
      const values = new Array<number | null>(length);
      for (let i = 0; i < length; i += 1) {
        const value = ring[(first + i) % SECONDS_KEPT] as number;
        values[i] = Number.isNaN(value) ? null : Math.round(100 * value) / 100;
      }
      columns[name] = values;
    }
    return columns;
  }
}

/** Writes a second into every ring; `none` takes the place of values that are missing, also in the seconds before. */
function note(rings: Rings, values: Readonly<Record<string, number | null>>, none: number, at: number): void {
  for (const name of Object.keys(values))
    if (!rings.has(name)) rings.set(name, new Float32Array(SECONDS_KEPT).fill(none));
  for (const [name, ring] of rings) ring[at] = values[name] ?? none;
}
