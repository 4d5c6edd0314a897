/** Timers that their owner can stop all together. */
import { startLimit, type LimitTimer } from '../machine/limit-timer.js';

export class Timers {
  readonly #running = new Set<LimitTimer>();

  start(delayMs: number, action: () => void): LimitTimer {
    const timer = startLimit(delayMs, () => {
      this.#running.delete(timer);
      action();
    });
    this.#running.add(timer);
    return timer;
  }

  stop(timer: LimitTimer): void {
    timer.stop();
    this.#running.delete(timer);
  }

  stopAll(): void {
    for (const timer of this.#running) timer.stop();
    this.#running.clear();
  }
}
