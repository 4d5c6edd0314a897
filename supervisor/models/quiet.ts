/** Waits until a model has no calls. */
import { startLimit } from '../machine/limit-timer.js';

/** Resolves with true once `isQuiet` returns true, with false at `endAtMs`. Polls every 10 ms: `isQuiet` is one sum. */
export async function untilQuiet(isQuiet: () => boolean, endAtMs: number): Promise<boolean> {
  while (!isQuiet()) {
    if (performance.now() >= endAtMs) return false;
    await new Promise<void>((resolve) => startLimit(10, resolve));
  }
  return true;
}
