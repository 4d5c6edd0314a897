/** The result of `/ping`: whether each model has at least its minimum number of workers. */
import type { Registered } from '../../../models/models.js';
import type { Model } from '../../../models/model.js';

export type PingStatus = 'Healthy' | 'Partial Healthy' | 'Unhealthy';

type Pinged = Pick<
  Registered<Pick<Model, 'readyWorkers' | 'wantedWorkers'>>,
  'model' | 'bounds' | 'isLeaving'
>;

/**
 * Returns the status over all models; `Healthy` if there are none. A model that is being unregistered does not count.
 */
export function pingStatus(registered: readonly Pinged[]): PingStatus {
  const present = registered.filter(({ isLeaving }) => !isLeaving);
  const isLoaded = ({ model: { readyWorkers, wantedWorkers }, bounds }: Pinged): boolean =>
    hasItsWorkers({ readyWorkers, wantedWorkers, minWorkers: bounds?.min ?? wantedWorkers });
  if (present.every(isLoaded)) return 'Healthy';
  return present.some(({ model }) => model.readyWorkers > 0) ? 'Partial Healthy' : 'Unhealthy';
}

export interface WorkerCounts {
  readonly readyWorkers: number;
  readonly minWorkers: number;
  readonly wantedWorkers: number;
}

/** Whether a model has its minimum number of workers, and at least one ready worker if any are wanted. */
export function hasItsWorkers({ readyWorkers, minWorkers, wantedWorkers }: WorkerCounts): boolean {
  return readyWorkers >= minWorkers && (readyWorkers > 0 || wantedWorkers === 0);
}
