/** Reads the use of the GPUs while the page has viewers. nvidia-smi may take seconds; it is never waited for. */
import type { GpuUsage } from '../../machine/gpu-usage.js';

const PAUSE_MS = 5000;

export class GpuWatch {
  readonly #read: () => Promise<readonly GpuUsage[]>;
  #gpus: readonly GpuUsage[] = [];
  #isReading = false;
  #nextAtMs = 0;

  constructor(read: () => Promise<readonly GpuUsage[]>) {
    this.#read = read;
  }

  /** The use as of the last reading. */
  get gpus(): readonly GpuUsage[] {
    return this.#gpus;
  }

  /** Begins a reading if the last one is over and some seconds old. */
  look(nowMs: number): void {
    if (this.#isReading || nowMs < this.#nextAtMs) return;
    this.#isReading = true;
    this.#nextAtMs = nowMs + PAUSE_MS;
    const take = (gpus: readonly GpuUsage[]): void => {
      this.#gpus = gpus;
      this.#isReading = false;
    };
    this.#read().then(take, () => take([])); // such as without free descriptors: it is tried again
  }

  /** Nobody looks any more: the figures would be old. */
  forget(): void {
    this.#gpus = [];
    this.#nextAtMs = 0;
  }
}
