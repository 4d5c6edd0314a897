/** What is measured by time and not by event: a scrape finds the last values, and waits for nothing. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { readGpuUsage, type GpuUsage } from '../machine/gpu-usage.js';

const SAMPLE_MS = 10_000;

/** Period of the timer that measures the event loop's delay. */
const RESOLUTION_MS = 10;

type Delay = Readonly<Record<'0.5' | '0.99' | '1', number>>;

export class Sampler {
  readonly #histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  readonly #onProblem: (problem: string) => void;
  #timer: NodeJS.Timeout | null = null;
  #delay: Delay | null = null;
  #gpus: readonly GpuUsage[] = [];
  #isReading = false;
  #problem = '';

  /** `onProblem` is told why the cards cannot be read, as often as the reason changes. */
  constructor(onProblem: (problem: string) => void) {
    this.#onProblem = onProblem;
  }

  start(): void {
    this.#histogram.enable();
    this.#timer = setInterval(() => this.#sample(), SAMPLE_MS);
    this.#timer.unref();
    void this.#readGpus();
  }

  stop(): void {
    this.#histogram.disable();
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  /** By quantile, over the last whole period, or since the start of the first. */
  get delaySeconds(): Delay {
    return this.#delay ?? this.#readDelay();
  }

  get gpus(): readonly GpuUsage[] {
    return this.#gpus;
  }

  #sample(): void {
    this.#delay = this.#readDelay();
    this.#histogram.reset();
    void this.#readGpus();
  }

  /** The histogram holds the time between two ticks of a timer; what is beyond its period is delay. */
  #readDelay(): Delay {
    const seconds = (ns: number): number => Math.max(0, ns / 1e6 - RESOLUTION_MS) / 1000;
    const { max } = this.#histogram;
    return {
      '0.5': seconds(this.#histogram.percentile(50)),
      '0.99': seconds(this.#histogram.percentile(99)),
      '1': seconds(max),
    };
  }

  /** One that takes longer than a period is not joined by another. */
  async #readGpus(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    const { gpus, problem } = await readGpuUsage(process.env);
    this.#isReading = false;
    this.#gpus = gpus;
    if (problem !== null && problem !== this.#problem) this.#onProblem(problem);
    this.#problem = problem ?? '';
  }
}
