/**
 * Watches the folder of an app, or a file and what it loads, and tells, once per burst of changes, which of its files hold something else.
 *
 * 1. Any news from the system starts a burst; editors save in several steps, and a checkout writes hundreds of files.
 * 2. When it is quiet again, the tree is read (`file-tree.ts`) and compared with what was read before.
 * The system says when to look, the reading what has changed: news that is lost, doubled or late does no harm.
 */
import { realpathSync, statSync, watch, type FSWatcher } from 'node:fs';
import { basename, dirname } from 'node:path';
import { changedFiles, isAppFile, isIgnored, readFileAlone, readTree, type FileTree } from './file-tree.js';
import type { Sources } from './sources.js';

export interface AppFilesListener {
  /** Paths below the app's folder, at least one. */
  onChange(files: readonly string[]): void;
  /** Some changes will not be seen; said once. */
  onProblem(problem: string): void;
}

/** Longer than editors, formatters and compilers pause within a save; too short for a person to notice. */
const QUIET_MS = 100;

/** Somebody may write all the time. */
const MAX_BURST_MS = 1000;

/** Linux has no watch over a whole tree: Node's own takes one for every file, and leaves out nothing. */
const ONE_WATCH_FOR_ALL = process.platform !== 'linux';

type State =
  | { readonly name: 'still' }
  | { readonly name: 'burst'; readonly sinceMs: number; readonly timer: NodeJS.Timeout }
  /** `isStale`: news came while the tree was being read. */
  | { readonly name: 'reading'; readonly isStale: boolean }
  | { readonly name: 'closed' };

export class AppFiles {
  readonly #folder: string;
  /** Name of the file that counts, with what it loads by relative paths; null: all of the folder count. */
  readonly #only: string | null;
  readonly #sources: Sources;
  readonly #listener: AppFilesListener;
  #state: State = { name: 'still' };
  #tree: FileTree = new Map();
  #watchers: FSWatcher[] = [];
  #hasProblem = false;

  /** `app`: path of its folder, or of a file in it, which exists. `isAlone`: only that file counts, and what it loads. */
  constructor(app: string, sources: Sources, listener: AppFilesListener, isAlone = false) {
    const path = realpathSync(app);
    const isFolder = statSync(path).isDirectory();
    this.#folder = isFolder ? path : dirname(path);
    this.#only = isAlone && !isFolder ? basename(path) : null;
    this.#sources = sources;
    this.#listener = listener;
  }

  /** Resolves once the files are known; what changes from then on is told. */
  async open(): Promise<void> {
    await this.#read();
  }

  /** Nothing is told from now on. */
  close(): void {
    if (this.#state.name === 'burst') clearTimeout(this.#state.timer);
    this.#state = { name: 'closed' };
    closeAll(this.#watchers);
  }

  #onNews(event: string, path: string | null): void {
    // An entry that is made, moved or removed may be a folder, whatever its name.
    if (path !== null && isIgnored(path, this.#sources)) return;
    if (path !== null && event === 'change' && !isAppFile(path, this.#sources)) return;
    if (this.#state.name === 'reading') this.#state = { name: 'reading', isStale: true };
    else this.#awaitQuiet();
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
    await this.#read();
    const files = changedFiles(before, this.#tree);
    if (this.#isClosed() || files.length === 0) return;
    this.#listener.onChange(files);
  }

  /** Watches every folder anew: one that was removed and made again has the same path and is another. */
  async #read(): Promise<void> {
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

  #watch(folder: string): void {
    if (ONE_WATCH_FOR_ALL && this.#watchers.length > 0) return;
    const isAbove = folder !== this.#folder && isWithin(this.#folder, folder);
    try {
      const watcher = watch(folder, { recursive: ONE_WATCH_FOR_ALL }, (event, path) => {
        // A folder tells of its own end by its own name; one above is watched for the return of the app's.
        const isAnyName = isAbove || path === basename(folder);
        this.#onNews(event, isAnyName ? null : path);
      });
      watcher.on('error', (error) => this.#tellProblem(error));
      this.#watchers.push(watcher);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') this.#tellProblem(error);
      // The app's own folder is gone: whoever makes it again does so in the one above.
      else if (isWithin(this.#folder, folder)) this.#watch(dirname(folder));
    }
  }

  #tellProblem(error: unknown): void {
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
