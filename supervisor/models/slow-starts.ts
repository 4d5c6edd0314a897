/**
 * Reports slow starts: while a worker takes more than a few seconds to become ready, prints at intervals what each worker
 * is doing, for how long, and the limit.
 * Before: the model asks when a worker's state has changed. After: a `StartReporter` shows the text.
 */
import { formatMs } from '../options/units.js';
import type { Slot } from '../slots/slot.js';
import { startPhase } from '../processes/worker-lifecycle.js';

/** One worker on its way to `ready`. */
export interface StartingWorker {
  readonly worker: number;
  /** Its activity, in words. */
  readonly doing: string;
  /** Time for which it does that. */
  readonly stateMs: number;
  /** Time since its process was started; null: its start waits. */
  readonly uptimeMs: number | null;
}

export function startingWorkers(slots: readonly Slot[]): StartingWorker[] {
  return slots.flatMap(({ index: worker, state, startWait }): StartingWorker[] => {
    if (startWait !== null)
      return [{ worker, doing: `waiting for ${startWait.reason}`, stateMs: startWait.ms, uptimeMs: null }];
    const starting = state.name === 'live' ? state.worker : state.name === 'renewing' ? state.next : null;
    const doing = starting === null ? null : startPhase(starting.state);
    if (starting === null || doing === null) return [];
    return [{ worker, doing, stateMs: starting.stateMs, uptimeMs: starting.uptimeMs }];
  });
}

/** Shows the progress of slow starts, in the log or on a terminal. */
export interface StartReporter {
  /** Delay before the next report; `reported` were shown since workers last started. */
  pauseMs(reported: number): number;
  /** `model`: its name, which the text has, if the server has several; else empty. */
  report(text: string, model: string): void;
  /** No worker is starting any more. */
  end(): void;
}

/** A start that takes less is not reported. */
export const FIRST_REPORT_MS = 3000;

/**
 * Returns the function to call when a worker's state may have changed. `limitMs`: longest time from the start of a worker until
 * it is ready. `label`: the model's name if the server has several, else empty.
 */
export function slowStarts(
  reporter: StartReporter,
  starting: () => readonly StartingWorker[],
  limitMs: () => number,
  label: () => string,
): () => void {
  let timer: NodeJS.Timeout | null = null;
  let reported = 0;
  const wait = (): void => {
    timer = setTimeout(report, reported === 0 ? FIRST_REPORT_MS : reporter.pauseMs(reported)).unref();
  };
  const report = (): void => {
    // Others may die and start again quickly meanwhile; they are not reported.
    const slow = starting().filter(({ uptimeMs, stateMs }) => (uptimeMs ?? stateMs) >= FIRST_REPORT_MS);
    if (slow.length > 0) {
      reported += 1;
      reporter.report(reportText(slow, limitMs(), label()), label());
    }
    wait();
  };
  return () => {
    const isStarting = starting().length > 0;
    if (isStarting && timer === null) wait();
    if (isStarting || timer === null) return;
    clearTimeout(timer);
    timer = null;
    reported = 0;
    reporter.end();
  };
}

/**
 * `still starting: workers 0, 1 importing the app for 12 s; worker 2 waiting for 2 workers of its own model to become ready
 * (--spawn-concurrency 2) for 12 s (limit for each: 10 min, --init-timeout)`
 */
function reportText(workers: readonly StartingWorker[], limitMs: number, label: string): string {
  const phases = [...new Set(workers.map(({ doing }) => doing))].map((phase) => {
    const group = workers.filter(({ doing }) => doing === phase);
    const names = group.map(({ worker }) => (label === '' ? worker : `${label}/${worker}`)).join(', ');
    const longestMs = Math.max(...group.map(({ stateMs }) => stateMs));
    const time = formatMs(Math.round(longestMs / 1000) * 1000);
    return `${group.length === 1 ? 'worker' : 'workers'} ${names} ${phase} for ${time}`;
  });
  const isLimited = workers.some(({ uptimeMs }) => uptimeMs !== null);
  const limit = isLimited ? ` (limit for each: ${formatMs(limitMs)}, --init-timeout)` : '';
  return `still starting: ${phases.join('; ')}${limit}`;
}
