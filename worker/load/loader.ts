/**
 * The interface of a loader, which makes what an adapter takes from the file of an app. Each kind of file has a loader;
 * `load-app.ts` has the list.
 */
import type { StartSpec } from '../../protocol/wire/messages.js';
import type { Exports } from '../adapters/loaded-app.js';
import type { AppLoadError } from './explain-load-error.js';

/**
 * The file of an app, and what a worker knows when it loads it: the GPU or CPU that it may use, how many threads, and the
 * operator's batch size.
 */
export type AppFile = Pick<
  StartSpec,
  'app' | 'appPlace' | 'service' | 'device' | 'batchSize' | 'asksForBatches'
>;

export interface Loader {
  /** Extensions of its files. */
  readonly extensions: readonly string[];
  /** @throws AppLoadError with file, cause and cure */
  load(file: AppFile): Promise<{
    /** Objects that may be an app, the likeliest first; an adapter takes one of them. */
    readonly candidates: readonly Exports[];
    /** Returns the error of a file whose candidates no adapter takes. */
    explainMissing(): AppLoadError;
  }>;
}
