/**
 * Checks that an arriving body makes progress: no pause may be longer than the body timeout, and the average rate may
 * not be below a minimum. One timer checks all bodies: a timer for each would cost 1 us per call.
 */

/** 8 kbit/s is less than any link that people use today, and a client that keeps to it still ends a 30 kB body in 30 s. */
export const LEAST_BYTES_PER_S = 1000;

/** The average rate counts only after this time: a client may need a while to begin. */
export const RATE_GRACE_MS = 30_000;

/** A check that is later than this was delayed by this process, which was busy or suspended. */
const LATE_MS = 1000;

export class BodyClock {
  readonly pauseLimitMs: number;
  readonly onTooSlow: () => void;
  /** Index in `bodies`. */
  index = 0;
  #bytes = 0;
  #sinceMs = performance.now();
  #lastByteAtMs = this.#sinceMs;

  constructor(pauseLimitMs: number, onTooSlow: () => void) {
    this.pauseLimitMs = pauseLimitMs;
    this.onTooSlow = onTooSlow;
  }

  onBytes(bytes: number): void {
    this.#bytes += bytes;
    this.#lastByteAtMs = performance.now();
  }

  /** Adds time that does not count against the client, because this process read nothing during it. */
  forgive(ms: number): void {
    this.#sinceMs += ms;
    this.#lastByteAtMs += ms;
  }

  isTooSlow(nowMs: number): boolean {
    const ageMs = nowMs - this.#sinceMs;
    if (nowMs - this.#lastByteAtMs >= this.pauseLimitMs) return true;
    return ageMs > RATE_GRACE_MS && this.#bytes < (LEAST_BYTES_PER_S * ageMs) / 1000;
  }
}

/** An array, not a Set: a Set that fills and empties all the time is rebuilt all the time, and its old tables keep requests alive. */
const bodies: BodyClock[] = [];
let timer: NodeJS.Timeout | null = null;
let dueAtMs = 0;
let intervalMs = 0;

/** `onTooSlow` is called at most a tenth of the pause limit, or 1 s, late, and perhaps more than once. */
export function watchBody(pauseLimitMs: number, onTooSlow: () => void): BodyClock {
  const body = new BodyClock(pauseLimitMs, onTooSlow);
  body.index = bodies.push(body) - 1;
  if (timer === null) {
    intervalMs = Math.min(1000, pauseLimitMs / 10);
    dueAtMs = performance.now() + intervalMs;
    timer = setInterval(checkBodies, intervalMs);
  }
  return body;
}

export function unwatchBody(body: BodyClock): void {
  const last = bodies.pop() as BodyClock;
  if (last === body) return;
  bodies[body.index] = last;
  last.index = body.index;
}

function checkBodies(): void {
  const nowMs = performance.now();
  const lateMs = nowMs - dueAtMs;
  dueAtMs = nowMs + intervalMs;
  if (lateMs > LATE_MS) for (const body of bodies) body.forgive(lateMs);
  for (const body of [...bodies]) if (body.isTooSlow(nowMs)) body.onTooSlow();
  if (bodies.length > 0 || timer === null) return;
  clearInterval(timer);
  timer = null;
}
