/** The spec of a model: an immutable value, replaced as a whole when anything in it changes. */
import type { ResolvedModelOptions } from '../options/resolve.js';
import type { ServiceSource, WorkerProgram } from '../runtimes/runtime.js';

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

/** Whether the operator asks for batches of this model, and not of all models of the server. */
export function asksForBatches({ resolved: { own, options } }: Pick<ModelSpec, 'resolved'>): boolean {
  return options.batchSize > 1 && own?.has('batchSize') === true;
}
