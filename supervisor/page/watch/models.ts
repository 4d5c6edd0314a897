/** Facts of models, workers and deaths in the words of the page. */
import type { LiveDeath, LiveModel, LiveWorker } from '../../status/live-types.js';
import { age } from '../parts/format.js';
import type { Tone } from '../parts/html.js';

/** `digits`, or `digits 2` if there are several versions. */
export function modelName({ name, version }: LiveModel, all: readonly LiveModel[]): string {
  return all.filter((other) => other.name === name).length > 1 ? `${name} ${version}` : name;
}

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

/** A model that has no workers because it wants none is well: it is asleep. */
export function modelState({ isLatched, state, minWorkers, maxWorkers }: LiveModel): [Tone, string] {
  if (isLatched) return ['bad', 'given up'];
  if (state !== 'unloaded') return [MODEL_TONES[state], state];
  return ['off', maxWorkers > 0 && minWorkers === 0 ? 'asleep' : 'no workers'];
}

const WORKER_TONES: Readonly<Record<string, Tone>> = {
  idle: 'good',
  busy: 'good',
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

/** A worker beyond the wanted ones that idles is a standby. */
export function workerState({ state, standby }: LiveWorker): [Tone, string] {
  return [WORKER_TONES[state] ?? 'off', standby && state === 'idle' ? 'standby' : state];
}

/** Says what a worker is doing, besides its state; may be empty. */
export function workerNote({ retryInMs, waitsFor, next, runningMs, held, failure }: LiveWorker): string {
  if (retryInMs !== null) return `next start in ${age(retryInMs)}`;
  if (failure !== null) return failure.code;
  if (waitsFor !== null) return `${next === null ? '' : 'its successor is '}waiting for ${waitsFor}`;
  if (next !== null) return `its successor is ${next}`;
  return runningMs !== null && held > 1 ? `holds ${held}` : '';
}

/** In a sentence: during what a worker died, and a likely reason. */
export function deathText({ during, requestId, hint, cause }: LiveDeath): string {
  const doing = {
    start: 'It was starting.',
    idle: 'It was idle.',
    call:
      requestId === ''
        ? 'It was running a call.'
        : `It was running the call ${requestId}, which got ${cause === 'run timeout' ? 'SERVE_INFERENCE_TIMEOUT' : 'SERVE_WORKER_LOST'}.`,
  }[during];
  const likely = hint === '' && cause === 'out of memory' ? 'it ran out of memory' : hint;
  return likely === '' ? doing : `${doing} ${likely.charAt(0).toUpperCase()}${likely.slice(1)}.`;
}
