/**
 * The report of a worker's death, for the restart policy, the log and `/status`. `DeathNotes` collects facts for it while the
 * worker lives; of several causes of a kind, the first is reported.
 */
import { readFileSync } from 'node:fs';
import { describeThrown, type ErrorCode } from '../../protocol/errors.js';
import { withoutPrintMarks } from '../../protocol/wire/print-mark.js';
import type { StuckCause } from '../calls/held-batch.js';
import type { CallFacts } from '../dispatch/call.js';

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** The reason for which the front killed a worker; the first one is kept. */
export type KillCause =
  | StuckCause
  | 'init timeout'
  | 'warm-up timeout'
  | 'its options are wrong'
  | 'over the memory budget'
  | 'protocol error'
  | 'it closed its connection to the server'
  | 'did not stop in time'
  | 'frozen when asked to stop'
  | 'stop';

/** The cause of a worker's end, as metrics count it. */
export type DeathCause =
  | KillCause
  | 'out of memory'
  | 'signal'
  | 'start failed'
  | 'said that it is finished'
  | 'exit'
  | 'no process';

/** The reason that a worker gives itself before it ends. */
export interface Fatal {
  readonly code: string;
  readonly message: string;
  readonly detail: string;
  readonly permanent: boolean;
  readonly transient: boolean;
}

export interface DyingCall {
  readonly facts: CallFacts;
  /** Number of other calls of its batch without an answer. */
  readonly others: number;
}

export interface WorkerDeath {
  readonly pid: number;
  readonly at: Date;
  readonly exit: Exit;
  /** `signal SIGKILL`, `exit code 1`, `killed by the server: run timeout`. */
  readonly how: string;
  readonly cause: DeathCause;
  readonly hint: string;
  /** The reason that the worker gave itself, if it gave one. */
  readonly fatal: Fatal | null;
  readonly during: 'start' | 'idle' | 'call';
  /** Whether the start had come as far as the warm-up, which the next start skips; left out: it had not. */
  readonly inWarmUp?: boolean;
  /** The call that it was running; of a batch the first. */
  readonly call: DyingCall | null;
  readonly uptimeMs: number;
  readonly finishedCalls: number;
  readonly stderrTail: readonly string[];
  /** Whether the front asked for it. */
  readonly wanted: boolean;
}

/** Text of the error that import or `init` threw, to compare; null if they threw none, or one that may not repeat. */
export function thrownAtStart({ during, fatal }: WorkerDeath): string | null {
  if (during !== 'start' || fatal === null || fatal.transient || !LOAD_ERRORS.has(fatal.code)) return null;
  return `${fatal.code}: ${fatal.message}`;
}

const LOAD_ERRORS: ReadonlySet<string> = new Set<ErrorCode>(['SERVE_APP_INVALID', 'SERVE_INIT_FAILED']);

/** The report of a worker whose process could not be started. */
export function neverStarted(cause: unknown): WorkerDeath {
  return {
    pid: 0,
    at: new Date(),
    exit: { code: null, signal: null },
    how: `could not be started: ${describeThrown(cause).message}`,
    cause: 'no process',
    hint: '',
    fatal: null,
    during: 'start',
    call: null,
    uptimeMs: 0,
    finishedCalls: 0,
    stderrTail: [],
    wanted: false,
  };
}

const STDERR_TAIL_BYTES = 64 * 1024;
const REPORTED_LINES = 20;

export class DeathNotes {
  readonly #stderrTail = new Tail(STDERR_TAIL_BYTES);
  readonly #oomKillsBefore = readOomKills();
  #fatal: Fatal | null = null;
  #killCause: KillCause | null = null;

  noteStderr(stderr: Buffer): void {
    this.#stderrTail.push(stderr);
  }

  /** Notes the reason for its end, from the worker or from the code that found the fault. */
  noteFatal(fatal: Pick<Fatal, 'code' | 'message'> & Partial<Fatal>): void {
    this.#fatal ??= { detail: '', permanent: false, transient: false, ...fatal };
  }

  noteKill(cause: KillCause): void {
    this.#killCause ??= cause;
  }

  how(exit: Exit): string {
    return describeExit(exit, this.#killCause);
  }

  /** Whether it ended because of too little memory. */
  ranOutOfMemory(exit: Exit): boolean {
    return isMemoryHint(this.#hint(exit));
  }

  /** `facts`: those that the worker's handle knows. */
  describe(
    exit: Exit,
    facts: Omit<WorkerDeath, 'at' | 'exit' | 'how' | 'cause' | 'hint' | 'fatal' | 'stderrTail'>,
  ): WorkerDeath {
    return {
      ...facts,
      at: new Date(),
      exit,
      how: this.how(exit),
      cause: this.#causeOf(exit, facts.during),
      hint: this.#hint(exit),
      fatal: this.#fatal,
      stderrTail: this.#stderrTail.lastLines(REPORTED_LINES),
    };
  }

  #causeOf(exit: Exit, during: WorkerDeath['during']): DeathCause {
    if (this.#killCause !== null && isOurs(exit, this.#killCause)) return this.#killCause;
    if (this.ranOutOfMemory(exit)) return 'out of memory';
    if (exit.signal !== null) return 'signal';
    if (this.#fatal === null) return 'exit';
    return during === 'start' ? 'start failed' : 'said that it is finished';
  }

  /** The OOM killer may have ended processes of this container since the worker was started. */
  #hint(exit: Exit): string {
    const oomKills = (readOomKills() ?? 0) - (this.#oomKillsBefore ?? 0);
    const stderr = this.#stderrTail.lastLines(REPORTED_LINES).join('\n');
    return exitHint(exit, this.#killCause, stderr, oomKills);
  }
}

/** `exit code 1`, `signal SIGSEGV`, `killed by the server: run timeout`. */
export function describeExit(exit: Exit, cause: KillCause | null): string {
  if (isOurs(exit, cause)) return `killed by the server: ${cause}`;
  if (exit.signal !== null) return `signal ${exit.signal}`;
  return exit.code === null ? 'unknown exit' : `exit code ${exit.code}`;
}

/** A likely reason beyond the bare exit, or an empty string. */
export function exitHint(exit: Exit, cause: KillCause | null, stderrTail: string, oomKills: number): string {
  if (isOurs(exit, cause)) return cause === 'it closed its connection to the server' ? CONNECTION_CLOSED : '';
  if (stderrTail.includes('JavaScript heap out of memory')) return HEAP_FULL;
  if (exit.signal === 'SIGKILL') return oomKills > 0 ? OOM_KILLED : KILLED;
  return CRASHES.includes(exit.signal) ? 'native code crashed; the last lines of stderr may say where' : '';
}

const CRASHES: readonly Exit['signal'][] = ['SIGSEGV', 'SIGABRT', 'SIGBUS', 'SIGILL'];
const CONNECTION_CLOSED =
  'the app closed or replaced file descriptor 3; it must not touch descriptors 3 to 5';
const HEAP_FULL = 'the JavaScript heap was full; raise it with NODE_OPTIONS=--max-old-space-size=<MiB>';
const OOM_KILLED =
  "the kernel's OOM killer ended a process of this container; give it more memory or fewer workers";
const KILLED =
  "the server did not send this SIGKILL: likely the kernel's OOM killer did (see dmesg), or a person";

/** Whether a hint is about too little memory: V8's heap was full, or the OOM killer ended the worker. */
export function isMemoryHint(hint: string): boolean {
  return hint === HEAP_FULL || hint === OOM_KILLED;
}

/** Whether the front's kill ended the worker: it may have ended by itself just before. */
function isOurs(exit: Exit, cause: KillCause | null): boolean {
  return cause !== null && exit.signal === 'SIGKILL';
}

/** Reads the number of processes of this cgroup that the OOM killer has ended; null where the kernel does not report it. */
function readOomKills(): number | null {
  try {
    const events = readFileSync('/sys/fs/cgroup/memory.events', 'utf8');
    const count = /^oom_kill (\d+)$/m.exec(events)?.[1];
    return count === undefined ? null : Number(count);
  } catch {
    return null; // not Linux, cgroup v1, or the root cgroup
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
