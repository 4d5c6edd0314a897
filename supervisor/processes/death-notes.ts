/** Collects facts about a living worker for the report of its death. Of several causes of a kind, the first is reported. */
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
import type { Fatal, WorkerDeath } from './worker-death.js';
import { withoutPrintMarks } from '../../protocol/wire/print-mark.js';

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

  noteStderr(stderr: Buffer): void {
    this.#stderrTail.push(stderr);
  }

  /** Notes the reason for its end, from the worker or from the code that found the fault. */
  noteFatal(fatal: Fatal): void {
    this.#fatal ??= fatal;
  }

  noteKill(cause: KillCause): void {
    this.#killCause ??= cause;
  }

  how(exit: Exit): string {
    return describeExit(exit, this.#killCause);
  }

  /** Whether it ended because of too little memory. */
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

  /** Number of processes of this container that the OOM killer has ended since the worker was started. */
  #oomKills(): number {
    return (readOomKills() ?? 0) - (this.#oomKillsBefore ?? 0);
  }
}

/** Keeps the last bytes of a stream. */
export class Tail {
  readonly #limitBytes: number;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    while (this.#chunks.length > 1 && this.#bytes - (this.#chunks[0] as Buffer).length >= this.#limitBytes) {
      this.#bytes -= (this.#chunks.shift() as Buffer).length;
    }
  }

  /** The last `count` lines that are not empty, without marks of prints. */
  lastLines(count: number): string[] {
    const text = Buffer.concat(this.#chunks).subarray(-this.#limitBytes).toString('utf8');
    return withoutPrintMarks(text)
      .split(/[\r\n]+/)
      .filter((line) => line.trim() !== '')
      .slice(-count);
  }
}
