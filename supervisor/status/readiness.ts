/**
 * `/readyz`: whether a load balancer should send calls to this server. A failing model must not take the others out of
 * rotation, so the server is ready while any model that wants workers has one, or is idle: its first call starts one. During the start it is not ready before each
 * first model was ready or has given up; else a server with one ready model would get the calls of all.
 */
import type { ReadinessAnswer } from '../http/request/request-context.js';
import type { ModelPresence } from '../models/model-health.js';
import type { ServedState } from '../models/model-status.js';

/**
 * Readiness of the server. With several models, the body lists the ones that are not ready, and the idle ones. A store of jobs that fails is
 * named too, but other calls go on.
 */
export function serverReadiness(
  models: readonly ModelPresence[],
  isDraining: boolean,
  areJobsAway: boolean,
): ReadinessAnswer {
  const state = isDraining ? 'draining' : stateOfAll(models);
  const others = models.length > 1 ? models.filter((model) => !isReady(model.state)) : [];
  const named = Object.fromEntries(others.map((model) => [model.label, model.state]));
  const notReady = others.length > 0 ? { notReady: named } : {};
  const idle = models.length > 1 ? models.filter((model) => model.state === 'idle') : [];
  const areIdle = idle.length > 0 ? { idle: idle.map(({ label }) => label) } : {};
  const away = areJobsAway ? { jobs: 'unavailable' } : {};
  const ready = isReady(state);
  return {
    ready,
    state,
    body: { state, ...reasonOf(ready ? [] : models), ...notReady, ...areIdle, ...away },
  };
}

/** Readiness of one model: true only while it has a ready worker, or has none because none was needed. */
export function modelReadiness(model: ModelPresence): ReadinessAnswer {
  const { state } = model;
  return { ready: isReady(state), state, body: { state, model: model.label, ...reasonOf([model]) } };
}

/** The reason why the first of these models that refuse calls does not start. */
function reasonOf(models: readonly ModelPresence[]): { readonly reason?: string } {
  const reason = models.find(({ problem }) => problem !== null)?.problem ?? null;
  return reason === null ? {} : { reason };
}

function isReady(state: ServedState): boolean {
  return state === 'ready' || state === 'idle';
}

function stateOfAll(models: readonly ModelPresence[]): ServedState {
  const wanting = models.filter((model) => model.state !== 'unloaded');
  const has = (state: ServedState): boolean => wanting.some((model) => model.state === state);
  if (has('ready') || has('idle')) {
    if (wanting.some(({ isComingUp }) => isComingUp)) return 'starting';
    return has('ready') ? 'ready' : 'idle';
  }
  if (has('unhealthy')) return 'unhealthy';
  if (has('failing')) return 'failing';
  return has('starting') ? 'starting' : 'unloaded';
}
