/**
 * Timers for time limits of other processes and clients. If this process was suspended or starved of CPU past the limit,
 * messages that arrived in time may wait unread in its pipes and sockets: these are read before the limit acts.
 */

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
 * Calls `action` once, after `delayMs`. If the timer is late, reads pending input first, for as long as it was late, at
 * most a second; `stop` still works during that time.
 */
export function startLimit(delayMs: number, action: () => void): LimitTimer {
  const dueAtMs = performance.now() + delayMs;
  let immediate: NodeJS.Immediate | undefined;
  let timer = setTimeout(() => {
    const lateMs = performance.now() - dueAtMs;
    if (lateMs <= PUNCTUAL_MS) action();
    else timer = setTimeout(afterReading, Math.min(lateMs, MAX_CATCH_UP_MS));
  }, delayMs);
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
