/** Timers that end together with their owner. */
export class Timers {
  readonly #running = new Set<NodeJS.Timeout>();

  start(delayMs: number, action: () => void): NodeJS.Timeout {
    const timer = setTimeout(() => {
      this.#running.delete(timer);
      action();
    }, delayMs);
    this.#running.add(timer);
    return timer;
  }

  stop(timer: NodeJS.Timeout): void {
    clearTimeout(timer);
    this.#running.delete(timer);
  }

  stopAll(): void {
    for (const timer of this.#running) clearTimeout(timer);
    this.#running.clear();
  }
}
