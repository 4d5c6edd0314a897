/** The spec of a model, and its plan, from the check of its options to its start. */
import type { Placement } from '../machine/placement.js';
import type { ResolvedModelOptions } from '../options/resolve.js';
import type { ServiceSource, WorkerProgram } from '../runtimes/runtime.js';
import type { WorkerBounds } from './bounds.js';

/** An immutable value, replaced as a whole when anything in it changes. */
export interface ModelSpec {
  readonly name: string;
  readonly version: string;
  /** The path in the store, address or path of the app under which the model was requested. */
  readonly url: string;
  /** Absolute path of the app. */
  readonly app: string;
  /** The name of the app in that file; empty: the one that it exports. */
  readonly appPlace: string;
  /** The service of Multi Model Server's kind; null: the export of the file says how it is run. */
  readonly service: ServiceSource | null;
  readonly program: WorkerProgram;
  /** The operator's options, without the app's own; including the devices that are asked for. */
  readonly resolved: ResolvedModelOptions;
}

export interface ModelPlan {
  readonly spec: ModelSpec;
  /** Whether the model answers on `/`. */
  readonly isDefault: boolean;
  /** Number of its first workers, on any devices; null: its options decide. */
  readonly firstWorkers: number | null;
  /** Bounds of its workers; null: as many as it has first. */
  readonly bounds: WorkerBounds | null;
  /** Releases its files; called when its last worker has ended, or when it is not served after all. */
  readonly release: () => void;
}

/** A model that a server starts with, and the devices of its first slots. */
export interface FirstModel extends ModelPlan {
  /** The bounds within which it scales itself; null if its number of workers is fixed. */
  readonly own: WorkerBounds | null;
  readonly placements: readonly Placement[];
}

/** Whether the operator asks for batches of this model, and not of all models of the server. */
export function asksForBatches({ resolved: { own, options } }: Pick<ModelSpec, 'resolved'>): boolean {
  return options.batchSize > 1 && own?.has('batchSize') === true;
}
