/**
 * Processes of our own workers that wait without an app, so that a worker which is needed at once does not wait for its
 * runtime to load. The next start of the same program takes one; it becomes a worker with the message `start`.
 *
 * A spare sends `hello`, which stays unread until it is taken: so there is nothing to follow but its death.
 */
import { basename } from 'node:path';
import type { Log } from '../observe/log.js';
import type { OrphanGuard } from './orphan-guard.js';
import { environmentOf, spawnWorker, type SpawnOptions, type WorkerProcess } from './spawn-worker.js';

/** Pause after the death of a spare, whose cause the next one may share. */
const PAUSE_MS = 10_000;

interface SpareOptions {
  /** Most spares of each program. */
  readonly mostEach: number;
  readonly guard: Pick<OrphanGuard, 'add' | 'remove'>;
  readonly log: Pick<Log, 'warn'>;
  /** Whether there is memory for one more; default: always. */
  readonly hasRoom?: () => boolean;
  readonly spawn?: (options: SpawnOptions) => WorkerProcess;
}

interface Spare {
  /** Identifies its program and environment. */
  readonly key: string;
  readonly process: WorkerProcess;
  readonly program: string;
  readonly sinceMs: number;
}

/** A spare, as `/status` shows it. */
export interface SpareStatus {
  readonly pid: number;
  readonly program: string;
  /** Time since it was started. */
  readonly ageMs: number;
}

export class SpareProcesses {
  readonly #options: SpareOptions;
  readonly #spawn: (options: SpawnOptions) => WorkerProcess;
  readonly #spares = new Set<Spare>();
  #wanted: readonly SpawnOptions[] = [];
  #pause: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(options: SpareOptions) {
    this.#options = options;
    this.#spawn = options.spawn ?? spawnWorker;
  }

  get status(): SpareStatus[] {
    const nowMs = performance.now();
    return Array.from(this.#spares, ({ process, program, sinceMs }) => ({
      pid: process.pid,
      program,
      ageMs: Math.round(nowMs - sinceMs),
    }));
  }

  get ids(): number[] {
    return Array.from(this.#spares, ({ process }) => process.pid);
  }

  /** Ends this spare: its memory is needed. */
  end(pid: number): void {
    for (const spare of this.#spares) if (spare.process.pid === pid) this.#end(spare);
  }

  /**
   * Takes a spare of exactly this program and environment; null if there is none. From now on it is the caller's,
   * who also removes it from the guard.
   */
  take(program: SpawnOptions): WorkerProcess | null {
    const key = keyOf(program);
    for (const spare of this.#spares) {
      if (spare.key !== key) continue;
      this.#spares.delete(spare);
      if (!spare.process.isEnding() && !spare.process.isFrozen()) return spare.process;
      this.#end(spare);
    }
    return null;
  }

  /** Starts what is missing of these programs and ends spares of others. Called when no worker is starting. */
  keep(programs: readonly SpawnOptions[]): void {
    if (this.#isClosed || this.#options.mostEach === 0) return;
    this.#wanted = programs;
    if (this.#pause !== null) return;
    const byKey = new Map(programs.map((program) => [keyOf(program), program]));
    for (const spare of this.#spares) if (!byKey.has(spare.key)) this.#end(spare);
    for (const [key, program] of byKey) this.#fill(key, program);
  }

  /** Ends all spares, and starts none from now on. */
  close(): void {
    this.#isClosed = true;
    if (this.#pause !== null) clearTimeout(this.#pause);
    for (const spare of this.#spares) this.#end(spare);
  }

  get #hasRoom(): boolean {
    return this.#options.hasRoom?.() ?? true;
  }

  #fill(key: string, program: SpawnOptions): void {
    const count = [...this.#spares].filter((spare) => spare.key === key).length;
    try {
      for (let i = count; i < this.#options.mostEach && this.#hasRoom; i += 1) this.#add(key, program);
    } catch (thrown) {
      this.#pauseAfter(`: ${(thrown as Error).message}`); // the system may lack processes just now
    }
  }

  #add(key: string, program: SpawnOptions): void {
    const process = this.#spawn(program);
    const spare = {
      key,
      process,
      program: basename(program.command[0] as string),
      sinceMs: performance.now(),
    };
    this.#spares.add(spare);
    this.#options.guard.add(process.pid);
    process.onExit(({ code, signal }) => {
      if (!this.#spares.delete(spare)) return; // it was taken, or ended on purpose
      this.#options.guard.remove(process.pid);
      process.begun.close();
      this.#pauseAfter(` ended (${signal ?? `exit code ${code}`})`);
    });
  }

  #pauseAfter(why: string): void {
    if (this.#isClosed || this.#pause !== null) return;
    const seconds = PAUSE_MS / 1000;
    this.#options.log.warn(`a spare process${why}; the next one starts in ${seconds} s`);
    this.#pause = setTimeout(() => {
      this.#pause = null;
      this.keep(this.#wanted);
    }, PAUSE_MS);
    this.#pause.unref();
  }

  #end(spare: Spare): void {
    this.#spares.delete(spare);
    const { process } = spare;
    process.onExit(() => {
      this.#options.guard.remove(process.pid);
      process.begun.close();
    });
    process.kill('SIGKILL');
  }
}

function keyOf(program: SpawnOptions): string {
  const env = Object.entries(environmentOf(program)).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([program.command, env]);
}
