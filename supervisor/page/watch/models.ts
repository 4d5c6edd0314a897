/** Facts of models and workers in the words of the page. */
import type { LiveModel, LiveSample, LiveWorker } from '../../status/live-types.js';
import type { Series } from '../live/history.js';
import { age } from '../parts/format.js';
import type { Tone } from '../parts/tone.js';

const MODEL_TONES: Readonly<Record<LiveModel['state'], Tone>> = {
  starting: 'busy',
  ready: 'good',
  idle: 'good',
  unhealthy: 'bad',
  failing: 'bad',
  draining: 'warn',
  unloaded: 'off',
  unloading: 'off',
};

export function modelTone(model: LiveModel): Tone {
  return model.isLatched ? 'bad' : MODEL_TONES[model.state];
}

/** A model that has no workers because it wants none is well: it is asleep. */
export function modelState(model: LiveModel): string {
  if (model.isLatched) return 'given up';
  if (model.state === 'unloaded')
    return model.maxWorkers > 0 && model.minWorkers === 0 ? 'asleep' : 'no workers';
  return model.state;
}

const WORKER_TONES: Readonly<Record<string, Tone>> = {
  idle: 'good',
  busy: 'good',
  standby: 'good',
  frozen: 'warn',
  backoff: 'bad',
  latched: 'bad',
  killing: 'bad',
  spawning: 'busy',
  loading: 'busy',
  initializing: 'busy',
  warming: 'busy',
  waiting: 'busy',
};

export function workerTone({ state }: LiveWorker): Tone {
  return WORKER_TONES[state] ?? 'off';
}

/** Steps of a start, as `docs/lifecycle.md` names them, in words. */
const STEPS: Readonly<Record<string, string>> = {
  waiting: 'waits for its turn to start',
  spawning: 'starts its process',
  loading: 'imports the app',
  initializing: 'runs init and the example',
  warming: 'runs its warm-up',
};

export interface Loading {
  readonly model: LiveModel;
  /** The one that has been starting for the longest time. */
  readonly worker: LiveWorker;
  /** Number of the model's other workers that are starting. */
  readonly others: number;
  /** Such as `imports the app`. */
  readonly step: string;
  /** Time in this step, and since its process started. */
  readonly stepMs: number;
  readonly totalMs: number;
}

/** The starts of models that have no ready worker yet. */
export function loadingOf(models: readonly LiveModel[], at: number): Loading[] {
  return models
    .filter(({ state, isLatched }) => state === 'starting' && !isLatched)
    .flatMap((model) => {
      const begun = ({ startedAt, since }: LiveWorker): number => startedAt ?? since ?? at;
      const starting = model.workers.filter(({ state }) => STEPS[state] !== undefined);
      const [worker] = starting.toSorted((a, b) => begun(a) - begun(b));
      if (worker === undefined) return [];
      const { state, waitsFor } = worker;
      const step = waitsFor === null ? (STEPS[state] ?? state) : `waits for ${waitsFor}`;
      const [stepMs, totalMs] = [at - (worker.since ?? at), at - begun(worker)];
      return [{ model, worker, others: starting.length - 1, step, stepMs, totalMs }];
    });
}

/** Says what a worker is doing, besides its state; may be empty. */
export function workerNote({ retryInMs, waitsFor, next, runningMs, held }: LiveWorker): string {
  if (retryInMs !== null) return `next start in ${age(retryInMs)}`;
  if (waitsFor !== null) return `${next === null ? '' : 'its successor is '}waiting for ${waitsFor}`;
  if (next !== null) return `its successor is ${next}`;
  if (runningMs !== null && held > 1) return `holds ${held}`;
  return '';
}

/** Ended calls of the last `seconds`, and those of them that failed. */
export function callsOf(series: Series | undefined, seconds: number): { calls: number; failed: number } {
  const sum = (name: keyof LiveSample): number =>
    (series?.columns[name].slice(-seconds) ?? []).reduce<number>((total, value) => total + (value ?? 0), 0);
  return { calls: sum('calls'), failed: sum('failed') };
}

/** The last value that was measured; null without one. */
export function latest(series: Series | undefined, name: keyof LiveSample): number | null {
  return series?.columns[name].findLast((value) => value !== null) ?? null;
}
