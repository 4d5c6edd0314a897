/** The files that one model's workers are loaded from: lent by the store, and watched with `--watch`. */
import { deferred } from '../../machine/deferred.js';
import { APP_SOURCES } from '../../runtimes/index.js';
import type { WorkerProgram } from '../../runtimes/runtime.js';
import { AppFiles, type AppFilesListener } from '../../watch/app-files.js';

export class ModelFiles {
  /** Resolves when the last worker of the model has ended. */
  readonly ended = deferred<void>();
  /** Release the files that workers may still use, in the order of the changes that brought them. */
  readonly #lent: (() => void)[];
  #watched: readonly AppFiles[] = [];

  constructor(release: () => void) {
    this.#lent = [release];
  }

  /** Watches the files of this program instead of those before; resolves once no change is missed any more. */
  async watch(
    { watches, sources = APP_SOURCES, isSingleFile = false }: WorkerProgram,
    listener: AppFilesListener,
  ): Promise<void> {
    this.unwatch();
    this.#watched = watches.map((path) => new AppFiles(path, sources, listener, isSingleFile));
    await Promise.all(this.#watched.map((files) => files.open()));
  }

  unwatch(): void {
    for (const files of this.#watched) files.close();
  }

  /**
   * Takes over the files of a change. Those before are lent as well until it has succeeded: workers may still use them. Then
   * call what this returns, which gives them back.
   */
  lend(release: () => void): () => void {
    const own = (): void => release(); // a release of no files is that of several changes
    this.#lent.push(own);
    return () => {
      for (const before of this.#lent.splice(0, this.#lent.indexOf(own))) before();
    };
  }

  /** The last worker has ended. */
  close(): void {
    this.unwatch();
    for (const release of this.#lent.splice(0)) release();
  }
}
