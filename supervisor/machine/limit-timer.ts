/** Timers: limits that act on time although this process was late, alarms, groups of timers, and waits with a limit. */
import { loose } from './guest.js';

/** Timers are normally a few milliseconds late. */
const PUNCTUAL_MS = 20;

/** Longest time to read data that arrived meanwhile, such as a large answer of which only the start fits into a pipe. */
const MAX_CATCH_UP_MS = 1000;

/** A time limit, and the name of the option that sets it, for errors. */
export interface NamedLimit {
  readonly ms: number;
  readonly name: string;
}

export interface LimitTimer {
  stop(): void;
}

/**
 * Calls `action` once, after `delayMs`: a time limit of another process or a client. If this process was suspended or starved
 * of CPU past the limit, messages that arrived in time may wait unread in its pipes and sockets: these are read first, for as
 * long as the timer was late, at most a second; `stop` still works during that time.
 */
export function startLimit(delayMs: number, action: () => void): LimitTimer {
  const dueAtMs = performance.now() + delayMs;
  let immediate: NodeJS.Immediate | undefined;
  let timer = setTimeout(() => {
    const lateMs = performance.now() - dueAtMs;
    if (lateMs <= PUNCTUAL_MS) action();
    else timer = loose(setTimeout(afterReading, Math.min(lateMs, MAX_CATCH_UP_MS)));
  }, delayMs);
  loose(timer);
  // The event loop runs timers, then reads, then immediates.
  const afterReading = (): void => {
    immediate = setImmediate(action);
  };
  return {
    stop: () => {
      clearTimeout(timer);
      clearImmediate(immediate);
    },
  };
}

/** Calls `action` once, after `delayMs`, however late. */
function startTimer(delayMs: number, action: () => void): LimitTimer {
  const timer = loose(setTimeout(action, delayMs));
  return { stop: () => clearTimeout(timer) };
}

/** One timer for the earliest of several times. */
export class Alarm {
  readonly #ring: () => void;
  readonly #start: typeof startLimit;
  #atMs = Infinity;
  #timer: LimitTimer | null = null;

  /** `start`: `startLimit` for an alarm that is a time limit. */
  constructor(ring: () => void, start = startTimer) {
    this.#ring = ring;
    this.#start = start;
  }

  /** Calls `ring` at `atMs` on the monotonic clock or a little later, unless it is set to an earlier time. */
  set(atMs: number): void {
    if (atMs >= this.#atMs) return;
    this.stop();
    this.#atMs = atMs;
    // Timers have whole milliseconds; one that fires early would only be set again.
    const waitMs = Math.max(1, Math.ceil(atMs - performance.now()));
    this.#timer = this.#start(waitMs, () => {
      this.stop();
      this.#ring();
    });
  }

  stop(): void {
    this.#timer?.stop();
    this.#timer = null;
    this.#atMs = Infinity;
  }
}

/** Timers that their owner can stop all together. */
export class Timers {
  readonly #running = new Set<LimitTimer>();

  start(delayMs: number, action: () => void): LimitTimer {
    const timer = startLimit(delayMs, () => {
      this.#running.delete(timer);
      action();
    });
    this.#running.add(timer);
    const stop = (): void => {
      timer.stop();
      this.#running.delete(timer);
    };
    return { stop };
  }

  stopAll(): void {
    for (const timer of this.#running) timer.stop();
    this.#running.clear();
  }
}

/** As `coming`; rejects, for this reason, if it takes longer. A time limit as that of `startLimit`. */
export function inTime<T>(limitMs: number, coming: Promise<T>, why: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const limit = startLimit(limitMs, () => reject(new Error(why)));
    coming.finally(() => limit.stop()).then(resolve, reject);
  });
}

/** Resolves with the result of `coming`, or with null after `limitMs`. */
export async function within<T>(limitMs: number, coming: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), limitMs).unref(); // must not keep the process alive
  });
  const first = await Promise.race([coming, late]);
  clearTimeout(timer);
  return first;
}
