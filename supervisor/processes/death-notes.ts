/** Notes taken about a worker while it lives, for the report of its death. The first cause of a kind is the one told. */
import {
  describeExit,
  exitHint,
  isOurs,
  ranOutOfMemory,
  readOomKills,
  type DeathCause,
  type Exit,
  type KillCause,
} from './exit-report.js';
import { Tail } from './tail.js';
import type { Fatal, WorkerDeath } from './worker-death.js';

const STDERR_TAIL_BYTES = 64 * 1024;
const REPORTED_LINES = 20;

/** Facts about the worker that its handle knows. */
export type WorkerFacts = Omit<
  WorkerDeath,
  'at' | 'exit' | 'how' | 'cause' | 'hint' | 'fatal' | 'stderrTail'
>;

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

  /** Whether too little memory ended it. */
  ranOutOfMemory(exit: Exit): boolean {
    return ranOutOfMemory(exit, this.#killCause, this.#lastLines().join('\n'), this.#oomKills());
  }

  describe(exit: Exit, facts: WorkerFacts): WorkerDeath {
    const stderrTail = this.#lastLines();
    return {
      ...facts,
      at: new Date(),
      exit,
      how: this.how(exit),
      cause: this.#causeOf(exit, facts.during),
      hint: exitHint(exit, this.#killCause, stderrTail.join('\n'), this.#oomKills()),
      fatal: this.#fatal,
      stderrTail,
    };
  }

  #causeOf(exit: Exit, during: WorkerDeath['during']): DeathCause {
    if (this.#killCause !== null && isOurs(exit, this.#killCause)) return this.#killCause;
    if (this.ranOutOfMemory(exit)) return 'out of memory';
    if (exit.signal !== null) return 'signal';
    if (this.#fatal === null) return 'exit';
    return during === 'start' ? 'start failed' : 'said that it is finished';
  }

  #lastLines(): string[] {
    return this.#stderrTail.lastLines(REPORTED_LINES);
  }

  /** How many processes of this container the kernel has killed for their memory since the worker was started. */
  #oomKills(): number {
    return (readOomKills() ?? 0) - (this.#oomKillsBefore ?? 0);
  }
}
