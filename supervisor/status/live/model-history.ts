/** The samples of one model in the last ten minutes, one per second, in arrays whose size never changes. */
import type { LiveColumns, LiveModelHistory, LiveSample } from '../live-types.js';

export const SECONDS_KEPT = 600;

const NAMES = [
  'calls',
  'failed',
  'waiting',
  'arriving',
  'running',
  'queueP50Ms',
  'queueP95Ms',
  'queueP99Ms',
  'runP50Ms',
  'runP95Ms',
  'runP99Ms',
  'batchSize',
  'readyWorkers',
  'memoryBytes',
] as const satisfies readonly (keyof LiveSample)[];

/** A second that was not measured. */
export const NO_SAMPLE = Object.fromEntries(NAMES.map((name) => [name, null])) as unknown as LiveSample;

/** A ring of seconds; NaN stands for null. 32 bits: seven digits are enough for a chart. */
type Ring = Float32Array;

export class ModelHistory {
  readonly #rings = new Map<keyof LiveSample, Ring>(NAMES.map((name) => [name, newRing()]));
  /** Calls by error code. There are as many codes as in the table of errors. */
  readonly #errors = new Map<string, Ring>();
  /** Number of seconds so far, dropped ones included. */
  #seconds = 0;

  /** Adds a second; `errors`: its calls by error code. */
  add(sample: LiveSample, errors: Readonly<Record<string, number>>): void {
    const at = this.#seconds % SECONDS_KEPT;
    for (const [name, ring] of this.#rings) ring[at] = sample[name] ?? NaN;
    for (const code of Object.keys(errors)) if (!this.#errors.has(code)) this.#errors.set(code, newRing());
    for (const [code, ring] of this.#errors) ring[at] = errors[code] ?? 0;
    this.#seconds += 1;
  }

  /** Returns the seconds that are kept, oldest first. */
  describe(): Omit<LiveModelHistory, 'key'> {
    const columns = [...this.#rings].map(([name, ring]) => [name, this.#inOrder(ring)]);
    const errors = [...this.#errors].map(([code, ring]) => [code, this.#inOrder(ring)] as const);
    return {
      columns: Object.fromEntries(columns) as LiveColumns,
      errors: Object.fromEntries(
        errors.filter(([, counts]) => counts.some((count) => count !== 0)),
      ) as Record<string, number[]>,
    };
  }

  /** A plain loop: a viewer of 20 models gets 170,000 numbers, and Array.from takes five times as long. */
  #inOrder(ring: Ring): (number | null)[] {
    const length = Math.min(this.#seconds, SECONDS_KEPT);
    const first = this.#seconds - length;
    const values = new Array<number | null>(length);
    for (let i = 0; i < length; i += 1) {
      const value = ring[(first + i) % SECONDS_KEPT] as number;
      values[i] = Number.isNaN(value) ? null : Math.round(100 * value) / 100;
    }
    return values;
  }
}

function newRing(): Ring {
  return new Float32Array(SECONDS_KEPT);
}
