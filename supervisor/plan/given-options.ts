/** Types of the options that programs pass to `serve()` and, for one model, to `server.models`. */
import type { ProgramModelOptions, ProgramOptions } from '../../protocol/option-types.js';
import type { SendAhead } from '../dispatch/batcher.js';
import type { Dialects } from '../http/dialects/index.js';
import type { OptionSource } from '../options/resolve.js';

/**
 * One of several models: its app, and its options where they differ from the server's.
 * @example
 * const digits: ModelSource = { app: './digits.ts', workers: 2, runTimeout: '10s' };
 * const server = await serve({ models: { digits, words: './words.ts' } });
 */
export interface ModelSource extends ProgramModelOptions {
  /** Path of the app; optional if `workerCommand` is given. */
  readonly app?: string;
  /** Default: `'1'`. */
  readonly version?: string;
  /** Program and arguments of a worker in another language (docs/wire.md). */
  readonly workerCommand?: readonly string[];
}

/**
 * Options of `serve()`, named as in docs/options.md. Durations are numbers of ms, or strings as on the command line.
 * @example
 * const options: ServeOptions = { app: './app.ts', port: 0, workers: 2, logLevel: 'warn' };
 */
export interface ServeOptions extends Omit<ProgramOptions, 'models'> {
  /** Path of the app; default: `app` of the config file, else `app.ts` or another default name. */
  readonly app?: string;
  /** Program and arguments of a worker in another language (docs/wire.md). */
  readonly workerCommand?: readonly string[];
  /**
   * Several models by name: each a path, or an object with path and options. Without `app`, no model answers on `/`, and
   * `app.ts` is not looked for. A string or an array of strings names models of `modelStore`, as `--models` does.
   */
  readonly models?: Readonly<Record<string, string | ModelSource>> | string | readonly string[] | undefined;
  /** Folder of the config file and of relative paths; default: the current folder. */
  readonly cwd?: string;
}

/** Settings that programs cannot give: they come from the command line, apps that start themselves, tests and benchmarks. */
export interface ServeInternals {
  readonly flags?: OptionSource;
  /** The values of `--model`. */
  readonly modelFlags?: readonly string[];
  /** Logged at the start. */
  readonly warnings?: readonly string[];
  /** The command line ends with `serve`: SageMaker has started this container. */
  readonly isSageMaker?: boolean;
  /** Serves no other model, even if the config file has some; for tests of one app. */
  readonly isAlone?: boolean;
  /** Replaces the rule `sendAhead`, for benchmarks. */
  readonly sendAhead?: SendAhead;
  /** Replaces the dialects of `http/dialects/index.ts`, for tests. */
  readonly dialects?: Dialects;
  /** Replaces the folder of the files of the page at `/`, for tests. */
  readonly pageFolder?: string;
  /** Aborts the start while it waits for an interpreter, nvidia-smi, a download or unpacking; `serve()` then rejects. */
  readonly stop?: AbortSignal;
  /** Selects an app of the file by the worker's name for it; empty: the app that the file exports. */
  readonly appPlace?: string;
}
