/** The plan of a model, from the check of its options to its start. */
import type { Placement } from '../machine/placement.js';
import type { Release } from '../store/stored-model.js';
import type { ModelSpec } from './model-spec.js';
import type { WorkerBounds } from './bounds.js';

export interface ModelPlan {
  readonly spec: ModelSpec;
  /** Whether the model answers on `/`. */
  readonly isDefault: boolean;
  /** Number of its first workers, on any devices; null: its options decide. */
  readonly firstWorkers: number | null;
  /** Bounds of its workers; null: as many as it has first. */
  readonly bounds: WorkerBounds | null;
  /** Releases its files; called when its last worker has ended, or when it is not served after all. */
  readonly release: Release;
}

/** A model that a server starts with, and the devices of its first slots. */
export interface FirstModel extends ModelPlan {
  /** The bounds within which it scales itself; null if its number of workers is fixed. */
  readonly own: WorkerBounds | null;
  readonly placements: readonly Placement[];
}
