/**
 * Start-up is never silent: while a worker takes more than a few seconds to become ready, this tells what each worker
 * is doing, for how long, and how long it may take.
 * Before: the model says when a worker's state has changed. After: a teller shows the text.
 */
import { formatMs } from '../options/units.js';
import type { Slot } from '../slots/slot.js';
import { startPhase, type WorkerState } from '../processes/worker-lifecycle.js';

/** One worker on its way to `ready`. */
export interface StartingWorker {
  readonly worker: number;
  readonly state: WorkerState | 'waiting';
  /** Time in this state. */
  readonly stateMs: number;
  /** Time since its process was started; 0 if it was not. */
  readonly uptimeMs: number;
}

export function startingWorkers(slots: readonly Slot[]): StartingWorker[] {
  return slots.flatMap(({ index: worker, state }): StartingWorker[] => {
    if (state.name === 'waiting') return [{ worker, state: state.name, stateMs: 0, uptimeMs: 0 }];
    const starting = state.name === 'live' ? state.worker : state.name === 'renewing' ? state.next : null;
    if (starting === null || startPhase(starting.state) === null) return [];
    const { stateMs, uptimeMs } = starting;
    return [{ worker, state: starting.state, stateMs, uptimeMs }];
  });
}

/** Receiver of the news. */
export interface StartReporter {
  /** Pause before the next news, when `told` were told since the last quiet. */
  pauseMs(told: number): number;
  report(text: string): void;
  /** No worker is starting any more. */
  end(): void;
}

/** A start that takes less needs no words. */
export const FIRST_REPORT_MS = 3000;

export class SlowStarts {
  readonly #teller: StartReporter;
  readonly #starting: () => readonly StartingWorker[];
  readonly #limitMs: () => number;
  readonly #label: () => string;
  #timer: NodeJS.Timeout | null = null;
  #told = 0;

  /**
   * `limitMs`: time that a worker has from its start until it is ready. `label`: the model's name while there are several
   * to tell apart, else empty.
   */
  constructor(
    teller: StartReporter,
    starting: () => readonly StartingWorker[],
    limitMs: () => number,
    label: () => string,
  ) {
    this.#label = label;
    this.#teller = teller;
    this.#starting = starting;
    this.#limitMs = limitMs;
  }

  /** A worker's state may have changed. */
  update(): void {
    const isStarting = this.#starting().some(({ state }) => state !== 'waiting');
    if (isStarting && this.#timer === null) this.#wait();
    else if (!isStarting && this.#timer !== null) this.#end();
  }

  #wait(): void {
    const pauseMs = this.#told === 0 ? FIRST_REPORT_MS : this.#teller.pauseMs(this.#told);
    this.#timer = setTimeout(() => this.#tell(), pauseMs);
    this.#timer.unref();
  }

  #tell(): void {
    const workers = this.#starting();
    // Others come and go quickly meanwhile: nothing to say of them.
    const slow = workers.filter(({ state, uptimeMs }) => state === 'waiting' || uptimeMs >= FIRST_REPORT_MS);
    if (slow.some(({ state }) => state !== 'waiting')) {
      this.#told += 1;
      this.#teller.report(reportText(slow, this.#limitMs(), this.#label()));
    }
    this.#wait();
  }

  #end(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#told = 0;
    this.#teller.end();
  }
}

/** `still starting: workers 0, 1 importing the app for 12 s (each has 10 min, --init-timeout)` */
function reportText(workers: readonly StartingWorker[], limitMs: number, label: string): string {
  const phases = [...new Set(workers.map(({ state }) => state))].map((state) => {
    const group = workers.filter((worker) => worker.state === state);
    const names = group.map(({ worker }) => (label === '' ? worker : `${label}/${worker}`)).join(', ');
    const longestMs = Math.max(...group.map(({ stateMs }) => stateMs));
    const phase = state === 'waiting' ? 'waiting for a turn to start' : startPhase(state);
    const time = state === 'waiting' ? '' : ` for ${formatMs(Math.round(longestMs / 1000) * 1000)}`;
    return `${group.length === 1 ? 'worker' : 'workers'} ${names} ${phase}${time}`;
  });
  return `still starting: ${phases.join('; ')} (each has ${formatMs(limitMs)}, --init-timeout)`;
}
