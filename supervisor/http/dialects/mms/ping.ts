/** The result of `/ping`: whether each model has at least its minimum number of workers. */
import type { Registered } from '../../../models/models.js';
import type { Model } from '../../../models/model.js';

export type PingStatus = 'Healthy' | 'Partial Healthy' | 'Unhealthy';

type Pinged = Pick<Registered, 'bounds' | 'isLeaving'> & {
  readonly model: {
    readonly crew: Pick<Model['crew'], 'ready'>;
    readonly health: Pick<Model['health'], 'state' | 'takesCalls'>;
  };
};

/**
 * Returns the status over all models; `Healthy` if there are none. A model that is being unregistered does not count.
 */
export function pingStatus(registered: readonly Pinged[]): PingStatus {
  const present = registered.filter(({ isLeaving }) => !isLeaving);
  const isLoaded = ({ model: { crew, health }, bounds: { min: minWorkers } }: Pinged): boolean =>
    hasItsWorkers({
      readyWorkers: crew.ready.length,
      minWorkers,
      needsNone: health.state === 'idle' || !health.takesCalls,
    });
  if (present.every(isLoaded)) return 'Healthy';
  return present.some(({ model: { crew, health } }) => crew.ready.length > 0 || health.state === 'idle')
    ? 'Partial Healthy'
    : 'Unhealthy';
}

export interface WorkerCounts {
  readonly readyWorkers: number;
  readonly minWorkers: number;
  /** Whether it may do without a worker now: it is idle, or takes no calls. */
  readonly needsNone: boolean;
}

/** Whether a model has its minimum number of workers, and at least one ready worker if it needs any. */
export function hasItsWorkers({ readyWorkers, minWorkers, needsNone }: WorkerCounts): boolean {
  return readyWorkers >= minWorkers && (readyWorkers > 0 || needsNone);
}
