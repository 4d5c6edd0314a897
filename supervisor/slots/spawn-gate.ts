/**
 * Decides which slot may start a worker now, among all models of a server: one at a time per GPU, because memory peaks
 * during init, and at most `cap` on all devices. On the CPU only the cap counts.
 *
 * A model whose workers fail to start must not delay others: starts after a failed one go last and use at most half of the
 * cap (one start, if the cap is 1). Before them, models take turns; within a model, first come is first served.
 *
 * With a memory budget, a start also needs memory: `budget/` says when it may go.
 */
import { NO_BUDGET, type MemoryRoom, type RoomStart } from '../budget/memory-room.js';

/** A start that waits at the gate. */
export interface Start extends RoomStart {
  /** Whether the previous start in this slot failed. */
  readonly isRetry: boolean;
}

interface Entry {
  readonly start: Start;
  readonly go: () => void;
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
    room.onRoom(() => this.#advance());
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
    const entry: Entry = { start, go };
    this.#waiting.push(entry);
    this.#room.enter(start);
    this.#advance();
    return () => this.#leave(entry);
  }

  #leave(entry: Entry): void {
    this.#waiting = this.#waiting.filter((other) => other !== entry);
    this.#room.leave(entry.start);
    if (this.#running.delete(entry)) this.#advance();
    if (this.isIdle) this.#onIdle();
  }

  #advance(): void {
    for (let next = this.#next(); next !== null; next = this.#next()) {
      const entry = next;
      this.#waiting = this.#waiting.filter((other) => other !== entry);
      this.#running.add(entry);
      entry.go();
    }
  }

  #next(): Entry | null {
    if (this.#running.size >= this.#cap) return null;
    let first: Entry | null = null;
    for (const entry of this.#waiting) {
      if (this.#mayGo(entry) && (first === null || this.#goesBefore(entry, first))) first = entry;
    }
    return first;
  }

  #mayGo({ start }: Entry): boolean {
    const { device, isRetry } = start;
    const running = Array.from(this.#running, (entry) => entry.start);
    if (!this.#room.mayGo(start)) return false;
    if (device !== 'cpu' && running.some((other) => other.device === device)) return false;
    return !isRetry || running.filter((other) => other.isRetry).length < maxRetries(this.#cap);
  }

  #goesBefore({ start: later }: Entry, { start: earlier }: Entry): boolean {
    if (later.isRetry !== earlier.isRetry) return earlier.isRetry;
    return this.#runningOf(later.model) < this.#runningOf(earlier.model);
  }

  #runningOf(model: string): number {
    return [...this.#running].filter(({ start }) => start.model === model).length;
  }
}

/** Most starts after a failed one that may be under way at a time. */
export function maxRetries(cap: number): number {
  return Math.max(1, Math.floor(cap / 2));
}
