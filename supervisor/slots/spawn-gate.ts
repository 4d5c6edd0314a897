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
import { NO_BUDGET, type MemoryRoom, type RoomStart } from '../budget/memory-room.js';

/** A start that waits at the gate. */
export interface Start extends RoomStart {
  /** Whether the previous start in this slot failed. */
  readonly isRetry: boolean;
}

/** The wait of a start at the gate. */
export interface StartWait {
  /** In words that follow "waiting for". */
  readonly reason: string;
  readonly ms: number;
}

interface Entry {
  readonly start: Start;
  readonly go: () => void;
  readonly sinceMs: number;
  /** Whether its model was down when it was allowed. */
  isRestore: boolean;
}

export class SpawnGate {
  readonly #cap: number;
  readonly #room: MemoryRoom;
  readonly #running = new Set<Entry>();
  /** In the order of arrival. */
  #waiting: Entry[] = [];
  #onIdle: () => void = () => {};

  constructor(cap: number, room: MemoryRoom = NO_BUDGET) {
    this.#cap = cap;
    this.#room = room;
    room.onRoom(() => this.look());
  }

  /** Calls `listener` each time when the last start is over and none waits. */
  onIdle(listener: () => void): void {
    this.#onIdle = listener;
  }

  /** Whether no start is under way, and none waits. */
  get isIdle(): boolean {
    return this.#running.size === 0 && this.#waiting.length === 0;
  }

  /** Calls `go` when this start is allowed, possibly at once. Returns a function that withdraws or ends it: call it once. */
  enter(start: Start, go: () => void): () => void {
    const entry: Entry = { start, go, sinceMs: performance.now(), isRestore: false };
    this.#waiting.push(entry);
    this.#room.enter(start);
    this.look();
    return () => this.#leave(entry);
  }

  /** Allows what may go now. Also called when a model may have lost its last ready worker. */
  look(): void {
    for (let next = this.#next(); next !== null; next = this.#next()) {
      const entry = next;
      this.#waiting = this.#waiting.filter((other) => other !== entry);
      entry.isRestore = entry.start.isModelDown();
      this.#running.add(entry);
      entry.go();
    }
  }

  /** Null if this start does not wait. */
  waitOf(start: Start): StartWait | null {
    const entry = this.#waiting.find((other) => other.start === start);
    const reason = entry === undefined ? null : this.#obstacle(start);
    return entry === undefined || reason === null ? null : { reason, ms: performance.now() - entry.sinceMs };
  }

  #leave(entry: Entry): void {
    this.#waiting = this.#waiting.filter((other) => other !== entry);
    this.#room.leave(entry.start);
    if (this.#running.delete(entry)) this.look();
    if (this.isIdle) this.#onIdle();
  }

  #next(): Entry | null {
    let first: Entry | null = null;
    for (const entry of this.#waiting) {
      if (
        this.#obstacle(entry.start) === null &&
        (first === null || this.#goesBefore(entry.start, first.start))
      )
        first = entry;
    }
    return first;
  }

  /** Why the start may not go now, in words; null if it may. */
  #obstacle(start: Start): string | null {
    const { device, isRetry } = start;
    if (!this.#room.mayGo(start)) return this.#room.lackOf(start);
    const running = [...this.#running];
    const onDevice = running.find((entry) => entry.start.device === device);
    if (device !== 'cpu' && onDevice !== undefined)
      return `${device}, where a worker of ${nameFor(start, onDevice.start)} is starting`;
    const beside = running.find(({ isRestore }) => isRestore);
    if (beside === undefined && start.isModelDown()) return null;
    const places = running.filter((entry) => entry !== beside).map((entry) => entry.start);
    const cap = `--spawn-concurrency ${this.#cap}`;
    if (places.length >= this.#cap) return `${listFor(start, places)} to become ready (${cap})`;
    const retries = places.filter((other) => other.isRetry);
    const most = maxRetries(this.#cap);
    if (!isRetry || retries.length < most) return null;
    return `${listFor(start, retries)} to become ready (starts after a failed one have ${most} of ${cap})`;
  }

  #goesBefore(later: Start, earlier: Start): boolean {
    const [a, b] = [this.#rank(later), this.#rank(earlier)];
    const differs = a.findIndex((value, i) => value !== b[i]);
    return differs >= 0 && (a[differs] as number) < (b[differs] as number);
  }

  /** The start with the smaller first number that differs goes first. */
  #rank(start: Start): readonly number[] {
    const { isRetry, isReplacement, model } = start;
    return [Number(!start.isModelDown()), Number(isRetry), Number(!isReplacement), this.#runningOf(model)];
  }

  #runningOf(model: string): number {
    return [...this.#running].filter(({ start }) => start.model === model).length;
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
