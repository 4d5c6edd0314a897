/** Measures at intervals, so that a scrape gets the last values without waiting. */
import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks';
import { readGpuUsage, type GpuUsage } from '../machine/nvidia-smi.js';
import { LatestList } from '../machine/latest-list.js';

const SAMPLE_MS = 10_000;

/** Period of the timer that measures the delay of the event loop. */
export const DELAY_RESOLUTION_MS = 10;

/** Delay of the event loop. The histogram has the times between two ticks of a timer; the excess over its period is delay. */
export function delayOf(histogram: IntervalHistogram, fromMs: (ms: number) => number) {
  const delay = (ns: number): number => fromMs(Math.max(0, ns / 1e6 - DELAY_RESOLUTION_MS));
  return {
    p50: delay(histogram.percentile(50)),
    p99: delay(histogram.percentile(99)),
    max: delay(histogram.max),
  };
}

export class Sampler {
  readonly gpus = new LatestList(() => this.#readGpus());
  readonly #histogram = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
  readonly #onProblem: (problem: string) => void;
  #timer: NodeJS.Timeout | null = null;
  #delay: ReturnType<typeof delayOf> | null = null;
  #problem = '';

  /** `onProblem` gets the reason if the GPUs cannot be read, each time the reason changes. */
  constructor(onProblem: (problem: string) => void) {
    this.#onProblem = onProblem;
  }

  start(): void {
    this.#histogram.enable();
    this.#timer = setInterval(() => this.#sample(), SAMPLE_MS);
    this.#timer.unref();
    this.gpus.look(performance.now());
  }

  stop(): void {
    this.#histogram.disable();
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  /** Delay of the event loop, over the last complete period, or since the start. */
  get delaySeconds(): ReturnType<typeof delayOf> {
    return this.#delay ?? this.#readDelay();
  }

  #sample(): void {
    this.#delay = this.#readDelay();
    this.#histogram.reset();
    this.gpus.look(performance.now());
  }

  #readDelay(): ReturnType<typeof delayOf> {
    return delayOf(this.#histogram, (ms) => ms / 1000);
  }

  async #readGpus(): Promise<readonly GpuUsage[]> {
    const { gpus, problem } = await readGpuUsage(process.env);
    if (problem !== null && problem !== this.#problem) this.#onProblem(problem);
    this.#problem = problem ?? '';
    return gpus;
  }
}
