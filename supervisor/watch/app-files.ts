/**
 * Watches the folder of an app, or a file and the files that it loads, and reports changed files once per burst of changes.
 *
 * 1. Any event of the system starts a burst; editors save in several steps, and a checkout writes hundreds of files.
 * 2. After a pause without events, reads the tree (`file-tree.ts`) and compares it with the previous reading.
 * Events only trigger a reading, so lost, repeated or late events do no harm.
 */
import { realpathSync, statSync, watch, type FSWatcher } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import {
  changedFiles,
  isAppFile,
  isIgnored,
  readFileAlone,
  readTree,
  type FileTree,
  type Sources,
} from './file-tree.js';

export interface AppFilesListener {
  /** Paths below the app's folder, at least one. */
  onChange(files: readonly string[]): void;
  /** Some changes will not be noticed; called once. */
  onProblem(problem: string): void;
}

/** Longer than the pauses of editors, formatters and compilers within a save; too short for a person to notice. */
const QUIET_MS = 100;

/** Limit for a program that writes all the time. */
const MAX_BURST_MS = 1000;

/** Linux cannot watch a whole tree: Node's recursive watch would need one watch per file and could not skip folders. */
const ONE_WATCH_FOR_ALL = process.platform !== 'linux';

type State =
  | { readonly name: 'still' }
  | { readonly name: 'burst'; readonly sinceMs: number; readonly timer: NodeJS.Timeout }
  /** `isStale`: an event came while the tree was read. */
  | { readonly name: 'reading'; readonly isStale: boolean }
  | { readonly name: 'closed' };

export class AppFiles {
  readonly #folder: string;
  /** Name of the single file that counts, with the files that it loads; null if the whole folder counts. */
  readonly #only: string | null;
  readonly #sources: Sources;
  readonly #listener: AppFilesListener;
  #state: State = { name: 'still' };
  #tree: FileTree = new Map();
  #watchers: FSWatcher[] = [];
  #hasProblem = false;

  /** `app`: existing path of the app's folder, or of a file in it. `isAlone`: only that file and the files that it loads count. */
  constructor(app: string, sources: Sources, listener: AppFilesListener, isAlone = false) {
    const path = realpathSync(app);
    const isFolder = statSync(path).isDirectory();
    this.#folder = isFolder ? path : dirname(path);
    this.#only = isAlone && !isFolder ? basename(path) : null;
    this.#sources = sources;
    this.#listener = listener;
  }

  /** Stops all reports. */
  close(): void {
    if (this.#state.name === 'burst') clearTimeout(this.#state.timer);
    this.#state = { name: 'closed' };
    closeAll(this.#watchers);
  }

  /** `path`: relative to the watched folder; null for anything. */
  #onEvent(event: string, folder: string, path: string | null): void {
    // A created, moved or removed entry may be a folder with any name.
    if (path !== null && isIgnored(path, this.#sources)) return;
    if (path !== null && event === 'change' && !this.#isFile(folder, path)) return;
    if (this.#state.name === 'reading') this.#state = { name: 'reading', isStale: true };
    else this.#awaitQuiet();
  }

  /** A file that the app loads may have any extension. */
  #isFile(folder: string, path: string): boolean {
    return isAppFile(path, this.#sources) || this.#tree.has(relative(this.#folder, join(folder, path)));
  }

  #awaitQuiet(): void {
    if (this.#state.name === 'closed') return;
    const nowMs = performance.now();
    const sinceMs = this.#state.name === 'burst' ? this.#state.sinceMs : nowMs;
    if (this.#state.name === 'burst') clearTimeout(this.#state.timer);
    const delayMs = Math.max(0, Math.min(QUIET_MS, sinceMs + MAX_BURST_MS - nowMs));
    this.#state = { name: 'burst', sinceMs, timer: setTimeout(() => void this.#compare(), delayMs) };
  }

  async #compare(): Promise<void> {
    const before = this.#tree;
    await this.open();
    const files = changedFiles(before, this.#tree);
    if (this.#isClosed() || files.length === 0) return;
    this.#listener.onChange(files);
  }

  /**
   * Reads the tree and watches every folder anew, because a folder may have been replaced by another at the same path.
   * Resolves once the files are known; later changes are reported.
   */
  async open(): Promise<void> {
    this.#state = { name: 'reading', isStale: false };
    const watchersBefore = this.#watchers;
    if (!ONE_WATCH_FOR_ALL) this.#watchers = [];
    const onFolder = (folder: string): void => this.#watch(folder);
    this.#tree =
      this.#only === null
        ? await readTree(this.#folder, this.#sources, this.#tree, onFolder)
        : await readFileAlone(this.#folder, this.#only, this.#sources, this.#tree, onFolder);
    if (!ONE_WATCH_FOR_ALL) closeAll(watchersBefore);
    this.#endReading();
  }

  #endReading(): void {
    if (this.#state.name === 'closed') {
      closeAll(this.#watchers); // those opened since
      return;
    }
    const isStale = this.#state.name === 'reading' && this.#state.isStale;
    this.#state = { name: 'still' };
    if (isStale) this.#awaitQuiet();
  }

  #isClosed(): boolean {
    return this.#state.name === 'closed';
  }

  /** Not by chokidar: it took 2,052 watches where these are 51 (2,000 files in 50 folders). */
  #watch(folder: string): void {
    if (ONE_WATCH_FOR_ALL && this.#watchers.length > 0) return;
    const isAbove = folder !== this.#folder && isWithin(this.#folder, folder);
    try {
      const watcher = watch(folder, { recursive: ONE_WATCH_FOR_ALL }, (event, path) => {
        // The removal of a folder is an event with its own name; a parent is watched for the return of the app's folder.
        const isAnyName = isAbove || path === basename(folder);
        this.#onEvent(event, folder, isAnyName ? null : path);
      });
      watcher.on('error', (error) => this.#reportProblem(error));
      this.#watchers.push(watcher);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') this.#reportProblem(error);
      // The app's folder does not exist: watches its parent, where it will be created again.
      else if (isWithin(this.#folder, folder)) this.#watch(dirname(folder));
    }
  }

  #reportProblem(error: unknown): void {
    if (this.#hasProblem) return;
    this.#hasProblem = true;
    const { message } = error as Error;
    this.#listener.onProblem(`some changes will not be seen: ${message}`);
  }
}

/** `app.ts, lib/labels.json, lib/shout.ts and 3 more` */
export function changeText(files: readonly string[]): string {
  const named = files.slice(0, MAX_NAMED);
  const more = files.length - named.length;
  return more === 0 ? named.join(', ') : `${named.join(', ')} and ${more} more`;
}

const MAX_NAMED = 3;

function isWithin(path: string, folder: string): boolean {
  return `${path}/`.startsWith(`${folder}/`);
}

function closeAll(watchers: readonly FSWatcher[]): void {
  for (const watcher of watchers) watcher.close();
}
