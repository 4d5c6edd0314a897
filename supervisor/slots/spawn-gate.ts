/**
 * Decides which slot may start a worker now, among all models of a server: one at a time per GPU, because memory peaks
 * during init, and at most `cap` on all devices. On the CPU only the cap counts.
 *
 * - The cap is there against a storm of starts. A model that was ready before and has no ready worker must not wait until
 *   others have loaded for the first time: its start goes first, and one such start at a time has a place of its own beside
 *   the cap. On a GPU it still waits for the start that is under way there, and with a memory budget for memory.
 * - A model whose workers fail to start must not delay others: starts after a failed one go last and use at most half of
 *   the cap (one start, if the cap is 1).
 * - Then, starts that replace a worker go before those that add one, models take turns, and within a model first come is
 *   first served.
 *
 * With a memory budget, a start also needs memory: `budget/` says when it may go.
 */
import type { Start } from '../budget/facts.js';
import type { MemoryBudget } from '../budget/memory-budget.js';

export class SpawnGate {
  /** Called each time when the last start is over and none waits. */
  onIdle: () => void = () => {};
  readonly #cap: number;
  readonly #memory: MemoryBudget | null;
  readonly #running = new Set<Start>();
  /** In the order of arrival. */
  #waiting: Start[] = [];

  /** `memory`: null without a budget. */
  constructor(cap: number, memory: MemoryBudget | null = null) {
    this.#cap = cap;
    this.#memory = memory;
    if (memory !== null) memory.onRoom = () => this.look();
  }

  /** Whether no start is under way, and none waits. */
  get isIdle(): boolean {
    return this.#running.size === 0 && this.#waiting.length === 0;
  }

  /** Lets this start go when it is allowed, possibly at once. */
  enter(start: Start): void {
    this.#waiting.push(start);
    this.#memory?.enter(start);
    this.look();
  }

  /** The start is over, or was given up while it waited. Call it once. */
  leave(start: Start): void {
    this.#waiting = this.#waiting.filter((other) => other !== start);
    this.#memory?.leave(start);
    if (this.#running.delete(start)) this.look();
    if (this.isIdle) this.onIdle();
  }

  /** Allows what may go now. Also called when a model may have lost its last ready worker. */
  look(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const start = next;
      this.#waiting = this.#waiting.filter((other) => other !== start);
      start.wentWhileDown = start.isModelDown();
      this.#running.add(start);
      start.go();
    }
  }

  /** The reason why this start waits, in words that follow "waiting for"; null if it does not wait. */
  waitsFor(start: Start): string | null {
    return this.#waiting.includes(start) ? this.#obstacle(start) : null;
  }

  #next(): Start | undefined {
    const free = this.#waiting.filter((start) => this.#obstacle(start) === null);
    return free.toSorted((a, b) => this.#rank(a) - this.#rank(b))[0];
  }

  /** Why the start may not go now, in words; null if it may. */
  #obstacle(start: Start): string | null {
    const { device, isRetry } = start;
    if (this.#memory?.mayGo(start) === false) return this.#memory.lackOf(start);
    const running = [...this.#running];
    const onDevice = running.find((other) => other.device === device);
    if (device !== 'cpu' && onDevice !== undefined)
      return `${device}, where a worker of ${nameFor(start, onDevice)} is starting`;
    const beside = running.find(({ wentWhileDown }) => wentWhileDown);
    if (beside === undefined && start.isModelDown()) return null;
    const places = running.filter((other) => other !== beside);
    const cap = `--spawn-concurrency ${this.#cap}`;
    if (places.length >= this.#cap) return `${listFor(start, places)} to become ready (${cap})`;
    const retries = places.filter((other) => other.isRetry);
    const most = maxRetries(this.#cap);
    if (!isRetry || retries.length < most) return null;
    return `${listFor(start, retries)} to become ready (starts after a failed one have ${most} of ${cap})`;
  }

  /** The start with the least number goes first; of several the one that came first. */
  #rank(start: Start): number {
    const kind = Number(!start.isModelDown()) * 4 + Number(start.isRetry) * 2 + Number(!start.isReplacement);
    const ofModel = [...this.#running].filter(({ model }) => model === start.model).length;
    return kind * (this.#running.size + 1) + ofModel;
  }
}

/** Most starts after a failed one that may be under way at a time, beside one that restores a model. */
export function maxRetries(cap: number): number {
  return Math.max(1, Math.floor(cap / 2));
}

/** `2 workers of slow@1, 1 of its own model` */
function listFor(start: Start, others: readonly Start[]): string {
  const counts = new Map<string, number>();
  for (const other of others) {
    const name = nameFor(start, other);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const [first = '', ...rest] = Array.from(counts, ([name, count]) => `${count} of ${name}`);
  const noun = others.length === 1 ? 'worker' : 'workers';
  return [first.replace(' ', ` ${noun} `), ...rest].join(', ');
}

function nameFor(start: Start, other: Start): string {
  return other.model === start.model ? 'its own model' : other.model;
}
