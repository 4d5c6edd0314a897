/**
 * `/readyz`: whether a load balancer should send calls to this server. A failing model must not take the others out of
 * rotation, so the server is ready while any model that wants workers has one. During the start it is not ready before each
 * first model was ready or has given up; else a server with one ready model would get the calls of all.
 */
import type { Health } from '../models/slot-summary.js';

/** The fields of a model that decide readiness. */
export interface ModelPresence {
  /** Its name in the log. */
  readonly label: string;
  readonly health: Health;
  /** Whether it may have workers at all. */
  readonly takesCalls: boolean;
  /** It is one of the first models, and was not ready yet and has not given up. */
  readonly isComingUp: boolean;
}

export interface Readiness {
  readonly ready: boolean;
  readonly state: ServedState;
  /** The answer to a probe, sent as JSON. */
  readonly body: object;
}

/** `unloaded`: no workers are wanted. */
export type ServedState = Health | 'unloaded';

/**
 * Readiness of the server. With several models, the body lists the ones that are not ready. A store of jobs that fails is
 * named too, but other calls go on.
 */
export function serverReadiness(
  models: readonly ModelPresence[],
  isDraining: boolean,
  areJobsAway: boolean,
): Readiness {
  const state = isDraining ? 'draining' : stateOfAll(models);
  const others = models.filter((model) => stateOf(model) !== 'ready');
  const named = Object.fromEntries(others.map((model) => [model.label, stateOf(model)]));
  const notReady = models.length > 1 && others.length > 0 ? { notReady: named } : {};
  const away = areJobsAway ? { jobs: 'unavailable' } : {};
  return { ready: state === 'ready', state, body: { state, ...notReady, ...away } };
}

/** Readiness of one model: true only while it has a ready worker. */
export function modelReadiness(model: ModelPresence): Readiness {
  const state = stateOf(model);
  return { ready: state === 'ready', state, body: { state, model: model.label } };
}

export function stateOf({ health, takesCalls }: ModelPresence): ServedState {
  return !takesCalls && health !== 'draining' ? 'unloaded' : health;
}

function stateOfAll(models: readonly ModelPresence[]): ServedState {
  const wanting = models.filter(({ takesCalls }) => takesCalls);
  const has = (state: Health): boolean => wanting.some(({ health }) => health === state);
  if (has('ready')) return wanting.some(({ isComingUp }) => isComingUp) ? 'starting' : 'ready';
  if (has('unhealthy')) return 'unhealthy';
  return has('starting') ? 'starting' : 'unloaded';
}
