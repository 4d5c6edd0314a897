/**
 * Timers for limits on what others do. When this process stood still (suspended, or short of a processor) until after
 * a limit was over, what others did in time may lie unread in its pipes and sockets: that is read first.
 */

/** Timers of a process that runs are a few milliseconds late. */
const PUNCTUAL_MS = 20;

/** Longest time to read what arrived meanwhile, such as a large answer of which only the beginning fits in a pipe. */
const MAX_CATCH_UP_MS = 1000;

/** A limit, and what its owner calls the option that sets it. */
export interface NamedLimit {
  readonly ms: number;
  readonly name: string;
}

export interface LimitTimer {
  stop(): void;
}

/**
 * Calls `action` once, after `delayMs`. If that moment was missed, everything that can be read is read before, for as
 * long as the timer was late, at most a second; `stop` still works then.
 */
export function startLimit(delayMs: number, action: () => void): LimitTimer {
  const dueAtMs = performance.now() + delayMs;
  let immediate: NodeJS.Immediate | undefined;
  let timer = setTimeout(() => {
    const lateMs = performance.now() - dueAtMs;
    if (lateMs <= PUNCTUAL_MS) action();
    else timer = setTimeout(afterReading, Math.min(lateMs, MAX_CATCH_UP_MS));
  }, delayMs);
  // In the order of the event loop: timers, reading, immediates.
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
