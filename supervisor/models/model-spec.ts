/** What a model is made from: an immutable value, replaced as a whole when anything of it changes. */
import type { ResolvedModelOptions } from '../options/resolve.js';
import type { ServiceSource, WorkerProgram } from '../runtimes/runtime.js';

export interface ModelSpec {
  readonly name: string;
  readonly version: string;
  /** What it was asked for by: its place in a store, or the path of its app. */
  readonly url: string;
  /** Absolute path of the app. */
  readonly app: string;
  /** Which app of that file; empty: the one that it exports. */
  readonly appPlace: string;
  /** Null: what the file exports says what it is. */
  readonly service: ServiceSource | null;
  readonly program: WorkerProgram;
  /** The operator's, before the app has said its own; the devices that it wishes for among them. */
  readonly resolved: ResolvedModelOptions;
}
