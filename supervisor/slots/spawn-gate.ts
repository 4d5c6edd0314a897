/**
 * Decides which slot may start a worker now: one at a time per GPU, because memory peaks during init, and a cap over all devices.
 * CPU workers are only under the cap. First come, first served.
 */

interface Waiting {
  readonly device: string;
  readonly go: () => void;
}

export class SpawnGate {
  readonly #cap: number;
  readonly #busyDevices = new Set<string>();
  #running = 0;
  #waiting: Waiting[] = [];

  constructor(cap: number) {
    this.#cap = cap;
  }

  /** Calls `go` when this device's turn has come; at once if it may. Returns how to withdraw or to leave: call it once. */
  enter(device: string, go: () => void): () => void {
    const entry: Waiting = { device, go };
    this.#waiting.push(entry);
    this.#advance();
    return () => this.#leave(entry);
  }

  #leave(entry: Waiting): void {
    const index = this.#waiting.indexOf(entry);
    if (index >= 0) {
      this.#waiting.splice(index, 1);
      return;
    }
    this.#running -= 1;
    this.#busyDevices.delete(entry.device);
    this.#advance();
  }

  #advance(): void {
    for (const entry of [...this.#waiting]) {
      if (this.#running >= this.#cap) return;
      const exclusive = entry.device !== 'cpu';
      if (exclusive && this.#busyDevices.has(entry.device)) continue;
      this.#waiting.splice(this.#waiting.indexOf(entry), 1);
      this.#running += 1;
      if (exclusive) this.#busyDevices.add(entry.device);
      entry.go();
    }
  }
}
