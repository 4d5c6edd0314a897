/** Waits for the calls that a model has taken. */
import { startLimit } from '../machine/limit-timer.js';

/** Resolves true once nothing waits or runs, false at the limit. Asked often: it is one sum. */
export async function untilQuiet(isQuiet: () => boolean, endAtMs: number): Promise<boolean> {
  while (!isQuiet()) {
    if (performance.now() >= endAtMs) return false;
    await new Promise<void>((resolve) => startLimit(10, resolve));
  }
  return true;
}
