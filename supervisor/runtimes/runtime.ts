/** The interface of a runtime, which turns an app into the program of its workers. Each runtime has a file or folder; `index.ts` is the list. */
import type { ResolvedModelOptions } from '../options/resolve.js';
import type { Sources } from '../watch/file-tree.js';

/** Location of a custom service: Multi Model Server's handlers, which take batches of items. */
export interface ServiceSource {
  /** Name of a function or a class in the file; empty if it is found by rule. */
  readonly handler: string;
  /** Absolute path of the folder with the model's files. */
  readonly modelDir: string;
}

/** Specification of an app to serve. */
export interface AppSpec {
  readonly name: string;
  readonly version: string;
  /** Absolute path; a `workerCommand` may interpret it in its own way. */
  readonly app: string;
  /** Name of the app in its file; empty for the exported one. */
  readonly appPlace: string;
  /** Null if the exports of the file decide what it is. */
  readonly service: ServiceSource | null;
  /** Program and arguments of a worker that speaks the wire protocol (docs/wire.md); null if the file decides the runtime. */
  readonly workerCommand: readonly string[] | null;
}

/** Circumstances of an app, which a runtime may need for its choice. */
export interface AppSetting {
  /** The operator's options. */
  readonly resolved: ResolvedModelOptions;
  /** Absolute path of the folder where the server was started, the base of relative paths. */
  readonly startFolder: string;
  /** The app comes from an archive: files beside it are not the operator's. */
  readonly isUnpacked: boolean;
  /** Environment variables that its workers inherit from the server. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Cancels the start of the server. */
  readonly stop?: AbortSignal | undefined;
}

/** Program that starts a worker of the app: a process that speaks the wire protocol. */
export interface WorkerProgram {
  /** Program and arguments. */
  readonly command: readonly string[];
  /** Variables in addition to those of the server; those of the device take precedence. */
  readonly env: Readonly<Record<string, string>>;
  /** Name in logs. */
  readonly label: string;
  /** Its process may be started before its slot is known: it takes the slot's variables from the message `start`. */
  readonly mayWait?: boolean;
  /** The interpreter that was found; left out if there was nothing to choose. */
  readonly interpreter?: { readonly path: string; readonly version: string };
  /** Variables for the thread counts of libraries, set to the worker's share of the cores unless the operator sets them. */
  readonly threadVariables?: readonly string[];
  /** Format of the values of its functions, a file of the worker's `formats/`; left out: `v8`. */
  readonly values?: 'msgpack-values' | undefined;
  /** For `--watch`: folders, and files whose folders contain the app; empty if unknown. */
  readonly watches: readonly string[];
  /** The app consists only of the files of `watches` and what they load; other files beside them do not belong to it. */
  readonly isSingleFile?: boolean;
  /** For `--watch`: facts about its files; those about code in any language if left out. */
  readonly sources?: Sources;
  /**
   * False for a model without code: its failures are not those of an author, and its workers may take batches only if the
   * operator asks for them.
   */
  readonly hasCode?: boolean;
  /** Instruction for authors to make an app take batches. */
  readonly batchCure: string;
  /** Describes in a sentence where a worker hung that was not ready in time, from the text after its note (docs/wire.md). */
  readonly stuckAt?: (left: string) => string;
  /** Warnings about the choice, logged once. */
  readonly warnings: readonly string[];
}

export interface Runtime {
  /** Names in queries and manifests, the canonical one first; left out if it is not chosen by name. */
  readonly names?: readonly string[];
  /** Extensions of code, in order of preference: such a file may be an app, or the entry of a model's folder. */
  readonly entries?: readonly string[];
  /** A folder without any entry is served by its only file with one of these extensions. */
  readonly alone?: readonly string[];
  /** Its files to watch, with extensions of their own; left out if unknown. */
  readonly sources?: Sources;
  /** Names of files and folders that running such an app creates, which no archive needs. */
  readonly leftovers?: readonly RegExp[];
  /** Whether it runs this app. The first of the list that does is used. */
  claims(spec: AppSpec): boolean;
  /**
   * Called once for each new spec of a model, before its workers.
   * @throws SERVE_CONFIG with file, cause and remedy, or the reason of `stop`
   */
  prepare(spec: AppSpec, setting: AppSetting): WorkerProgram | Promise<WorkerProgram>;
}
