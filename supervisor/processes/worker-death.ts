/** The report of a worker's death, for the restart policy, the log and `/status`. */
import { describeThrown, type ErrorCode } from '../../protocol/errors.js';
import type { CallFacts } from '../dispatch/call.js';
import type { DeathCause, Exit } from './exit-report.js';

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
