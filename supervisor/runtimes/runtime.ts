/** What turns an app into the program of its workers. One file or folder per runtime; `index.ts` is the list. */
import type { ResolvedModelOptions } from '../options/resolve.js';
import type { Sources } from '../watch/sources.js';

/** Where a custom service stands: handlers that take batches of items, as Multi Model Server calls them. */
export interface ServiceSource {
  /** Name of a function or a class in the file; empty: found by rule. */
  readonly handler: string;
  /** Absolute path of the folder that the model's files are in. */
  readonly modelDir: string;
}

/** An app, as somebody asks for it. */
export interface AppSpec {
  readonly name: string;
  readonly version: string;
  /** Absolute path; what it means to the worker is up to a program of the user's own. */
  readonly app: string;
  /** Which app of that file; empty: the one that it exports. */
  readonly appPlace: string;
  /** Null: what the file exports says what it is. */
  readonly service: ServiceSource | null;
  /** Program and arguments of a worker in another language, which speaks the wire (docs/wire.md); null: found by the file. */
  readonly workerCommand: readonly string[] | null;
}

/** Where an app is asked for, and by whom: what a runtime may have to choose by. */
export interface AppSetting {
  /** The operator's options. */
  readonly resolved: ResolvedModelOptions;
  /** Absolute path of the folder that the server was started in; relative paths begin there. */
  readonly startFolder: string;
  /** The app came in an archive: what lies beside it is not its operator's. */
  readonly isUnpacked: boolean;
  /** What its workers inherit of the server's environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The server is not wanted any more, before it has started. */
  readonly stop?: AbortSignal | undefined;
}

/** How a worker of the app is started: a process that speaks the wire. */
export interface WorkerProgram {
  /** Program and arguments. */
  readonly command: readonly string[];
  /** Variables beside those of the server; those of its device come on top. */
  readonly env: Readonly<Record<string, string>>;
  /** Folder that it starts in; null: the server's. */
  readonly cwd: string | null;
  /** Name for people. */
  readonly label: string;
  /** What runs the app, where that was looked for; null: there was nothing to choose. */
  readonly interpreter: { readonly path: string; readonly version: string } | null;
  /** Variables that say how many threads libraries start: the worker's share of the cores, unless the operator sets them. */
  readonly threadVariables: readonly string[];
  /** Folders, and files whose folders hold what the app is made of, for `--watch`; empty: not known. */
  readonly watches: readonly string[];
  /** The files of `watches` are all that the app is made of: others beside them are others'. */
  readonly isSingleFile?: boolean;
  /** What its author writes so that an app takes batches. */
  readonly batchCure: string;
  /** A sentence on where a worker hung that was not ready in time, by what it has left behind its note (docs/wire.md). */
  readonly stuckAt?: (left: string) => string;
  /** What the operator should know of the choice, said once. */
  readonly warnings: readonly string[];
}

export interface Runtime {
  /** What people and manifests call it; none if it is asked for by other means. The first one is its own. */
  readonly names: readonly string[];
  /** Extensions of the files that are its apps, the likelier ones first; none if it is asked for by other means. */
  readonly extensions: readonly string[];
  /** What counts in a folder that is watched; null: not known. */
  readonly sources: Sources | null;
  /** Names of files and folders that running such an app leaves behind, and that no archive needs. */
  readonly leftovers: readonly RegExp[];
  /** Whether it runs this app. The first of the list that does is the one. */
  claims(spec: AppSpec): boolean;
  /**
   * Called once for each new spec of a model, before its workers.
   * @throws SERVE_CONFIG with file, cause and cure, and the reason of `stop`
   */
  prepare(spec: AppSpec, setting: AppSetting): Promise<WorkerProgram>;
}
