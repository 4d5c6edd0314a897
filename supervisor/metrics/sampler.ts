/** Measures at intervals, so that a scrape gets the last values without waiting. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { readGpuUsage, type GpuUsage } from '../machine/nvidia-smi.js';
import { LatestList } from '../machine/latest-list.js';

const SAMPLE_MS = 10_000;

/** Period of the timer that measures the delay of the event loop. */
const RESOLUTION_MS = 10;

type Delay = Readonly<Record<'p50' | 'p99' | 'max', number>>;

export class Sampler {
  readonly gpus = new LatestList(() => this.#readGpus());
  readonly #histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  readonly #onProblem: (problem: string) => void;
  #timer: NodeJS.Timeout | null = null;
  #delay: Delay | null = null;
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
  get delaySeconds(): Delay {
    return this.#delay ?? this.#readDelay();
  }

  #sample(): void {
    this.#delay = this.#readDelay();
    this.#histogram.reset();
    this.gpus.look(performance.now());
  }

  /** The histogram has the times between two ticks of a timer; the excess over its period is delay. */
  #readDelay(): Delay {
    const seconds = (ns: number): number => Math.max(0, ns / 1e6 - RESOLUTION_MS) / 1000;
    const { max } = this.#histogram;
    return {
      p50: seconds(this.#histogram.percentile(50)),
      p99: seconds(this.#histogram.percentile(99)),
      max: seconds(max),
    };
  }

  async #readGpus(): Promise<readonly GpuUsage[]> {
    const { gpus, problem } = await readGpuUsage(process.env);
    if (problem !== null && problem !== this.#problem) this.#onProblem(problem);
    this.#problem = problem ?? '';
    return gpus;
  }
}
