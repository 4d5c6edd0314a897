/** Waits for a lock that another process holds without sleeping in SQLite, which would stop the event loop. */
import { setTimeout } from 'node:timers/promises';
import { isBusy } from './sqlite-errors.js';

/** How long a call waits while other processes write; an error's text says so too. */
const BUSY_LIMIT_MS = 30_000;
const FIRST_DELAY_MS = 0.5;
const LAST_DELAY_MS = 10;

/** Runs a step, again and again while it meets a lock. @throws what it throws, or of a lock that stays */
export async function untilFree<T>(step: () => T, limitMs = BUSY_LIMIT_MS): Promise<T> {
  const beganAtMs = performance.now();
  for (let delayMs = FIRST_DELAY_MS; ; delayMs = Math.min(2 * delayMs, LAST_DELAY_MS)) {
    try {
      return step();
    } catch (error) {
      if (!isBusy(error) || performance.now() - beganAtMs >= limitMs) throw error;
    }
    // Two that met each other once shall not meet every time.
    await setTimeout(delayMs * (0.5 + Math.random()));
  }
}
