/** Options that a program gives: to `serve()`, and to `server.models` for one model. */
import type { ProgramModelOptions, ProgramOptions } from '../../protocol/option-types.js';
import type { SendAhead } from '../dispatch/send-ahead.js';
import type { Dialects } from '../http/dialects/index.js';
import type { OptionSource } from '../options/resolve.js';

/** One of several models: its app, and the options in which it differs from the server's. */
export interface ModelSource extends ProgramModelOptions {
  /** Path of the app; may be left out beside `workerCommand`. */
  readonly app?: string;
  /** `'1'` if left out. */
  readonly version?: string;
  /** Program and arguments of a worker in another language (docs/wire.md). */
  readonly workerCommand?: readonly string[];
}

/** Options of `serve()`, by the names of docs/options.md; durations are ms or have a unit, as on the command line. */
export interface ServeOptions extends Omit<ProgramOptions, 'models'> {
  /** Path of the app; without it, `app` of the config file, then `app.ts` and its like. */
  readonly app?: string;
  /** Program and arguments of a worker in another language (docs/wire.md). */
  readonly workerCommand?: readonly string[];
  /**
   * Several models by their names: a path, or an object of path and options. Without an app, none answers on `/`, and
   * `app.ts` is not looked for. A text or an array of texts names models of `modelStore`, as `--models` does.
   */
  readonly models?: Readonly<Record<string, string | ModelSource>> | string | readonly string[] | undefined;
  /** Folder of the config file and of relative paths; the current one. */
  readonly cwd?: string;
}

/** Settings that only the command line (its source of options), an app that starts itself, tests and benchmarks give. */
export interface ServeInternals {
  readonly flags?: OptionSource;
  /** The values of `--model`. */
  readonly modelFlags?: readonly string[];
  /** Said in the log at the start. */
  readonly warnings?: readonly string[];
  /** No other model is served, whatever the config file says: an app is tested by itself. */
  readonly isAlone?: boolean;
  readonly sendAhead?: SendAhead;
  readonly dialects?: Dialects;
  /** Ends what a start may wait for: the answer of an interpreter or of nvidia-smi, downloads, unpacking; `serve()` then rejects. */
  readonly stop?: AbortSignal;
  /** Which app of the file, as the worker names them; empty: the one that it exports. */
  readonly appPlace?: string;
}
