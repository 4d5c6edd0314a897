/** Notes taken about a worker while it lives, for the report of its death. The first cause of a kind is the one told. */
import { describeExit, exitHint, readOomKills, type Exit, type KillCause } from './exit-report.js';
import { Tail } from './tail.js';
import type { Fatal, WorkerDeath } from './worker-death.js';

const STDERR_TAIL_BYTES = 64 * 1024;
const REPORTED_LINES = 20;

/** Facts about the worker that its handle knows. */
export type WorkerFacts = Omit<WorkerDeath, 'at' | 'exit' | 'how' | 'hint' | 'fatal' | 'stderrTail'>;

export class DeathNotes {
  readonly #stderrTail = new Tail(STDERR_TAIL_BYTES);
  readonly #oomKillsBefore = readOomKills();
  #fatal: Fatal | null = null;
  #killCause: KillCause | null = null;

  printed(stderr: Buffer): void {
    this.#stderrTail.push(stderr);
  }

  /** Why it ends, in the words of who knows. */
  said(fatal: Fatal): void {
    this.#fatal ??= fatal;
  }

  killedFor(cause: KillCause): void {
    this.#killCause ??= cause;
  }

  how(exit: Exit): string {
    return describeExit(exit, this.#killCause);
  }

  describe(exit: Exit, facts: WorkerFacts): WorkerDeath {
    const stderrTail = this.#stderrTail.lastLines(REPORTED_LINES);
    const oomKills = (readOomKills() ?? 0) - (this.#oomKillsBefore ?? 0);
    return {
      ...facts,
      at: new Date(),
      exit,
      how: this.how(exit),
      hint: exitHint(exit, this.#killCause, stderrTail.join('\n'), oomKills),
      fatal: this.#fatal,
      stderrTail,
    };
  }
}
