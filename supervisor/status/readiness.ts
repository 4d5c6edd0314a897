/**
 * `/readyz`: whether calls should come here. One bad model never takes the others out of rotation, so the server is ready
 * while a model that wants workers has one; but not before each model that it starts with was ready or has given up, or
 * the first of them would be sent the calls of all.
 */
import type { Health } from '../models/slot-summary.js';

/** A model, as far as readiness goes. */
export interface ModelPresence {
  /** As logs name it. */
  readonly label: string;
  readonly health: Health;
  readonly wantedWorkers: number;
  /** The server starts with it, and it was neither ready yet nor has it given up. */
  readonly isComingUp: boolean;
}

export interface Readiness {
  readonly ready: boolean;
  readonly state: ServedState;
  /** What a probe is told. */
  readonly body: object;
}

/** `unloaded`: it wants no workers. */
export type ServedState = Health | 'unloaded';

/** Readiness of the server with all its models; the body names those that are not ready, if there are several. */
export function serverReadiness(models: readonly ModelPresence[], isDraining: boolean): Readiness {
  const state = isDraining ? 'draining' : stateOfAll(models);
  const others = models.filter((model) => stateOf(model) !== 'ready');
  const named = Object.fromEntries(others.map((model) => [model.label, stateOf(model)]));
  const notReady = models.length > 1 && others.length > 0 ? { notReady: named } : {};
  return { ready: state === 'ready', state, body: { state, ...notReady } };
}

/** Readiness of one model, strictly: it has a worker that is ready. */
export function modelReadiness(model: ModelPresence): Readiness {
  const state = stateOf(model);
  return { ready: state === 'ready', state, body: { state, model: model.label } };
}

export function stateOf({ health, wantedWorkers }: ModelPresence): ServedState {
  return wantedWorkers === 0 && health !== 'draining' ? 'unloaded' : health;
}

function stateOfAll(models: readonly ModelPresence[]): ServedState {
  const wanting = models.filter(({ wantedWorkers }) => wantedWorkers > 0);
  const has = (state: Health): boolean => wanting.some(({ health }) => health === state);
  if (has('ready')) return wanting.some(({ isComingUp }) => isComingUp) ? 'starting' : 'ready';
  if (has('unhealthy')) return 'unhealthy';
  return has('starting') ? 'starting' : 'unloaded';
}
