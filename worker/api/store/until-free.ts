/** Waits for a lock of another process without sleeping in SQLite, which would block the event loop. */
import { setTimeout } from 'node:timers/promises';
import { isBusy } from './sqlite-errors.js';

/** Longest wait of a call while other processes write; the text of an error mentions it too. */
const BUSY_LIMIT_MS = 30_000;
const FIRST_DELAY_MS = 0.5;
const LAST_DELAY_MS = 10;

/** Runs a step, repeatedly while it meets a lock. @throws its error; that of a lock after the limit */
export async function untilFree<T>(step: () => T, limitMs = BUSY_LIMIT_MS): Promise<T> {
  const beganAtMs = performance.now();
  for (let delayMs = FIRST_DELAY_MS; ; delayMs = Math.min(2 * delayMs, LAST_DELAY_MS)) {
    try {
      return step();
    } catch (error) {
      if (!isBusy(error) || performance.now() - beganAtMs >= limitMs) throw error;
    }
    // Random, so that two processes that collided once do not collide every time.
    await setTimeout(delayMs * (0.5 + Math.random()));
  }
}
