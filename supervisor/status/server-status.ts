/** Types of the answer to `GET /status`, also returned by `server.status()`: times in ms, sizes in bytes. The log lines about a drain and an end. */
import { formatMs } from '../options/units.js';
import type { ServeError } from '../../protocol/errors.js';
import type { BudgetStatus } from '../budget/memory-budget.js';
import type { ModelStatus } from '../models/model-status.js';
import type { SpareStatus } from '../processes/spare-processes.js';

/**
 * Why a server ended.
 * @example
 * const codeOf = ({ reason }: ServerEnd) => (reason === 'drained' ? 0 : 1);
 */
export interface ServerEnd {
  /** `drained`: every call was answered. `cut`: the drain timeout passed first. `failed`: no worker could start. */
  readonly reason: 'drained' | 'cut' | 'failed' | 'killed';
  readonly error: ServeError | null;
}

/**
 * The answer to `GET /status`, and of `server.status()`.
 * @example
 * const answered = ({ replies }: ServerStatus) => replies['ok'] ?? 0;
 */
export interface ServerStatus {
  /**
   * `ready`: a model has a ready worker, and every model that the server started with was ready or has given up.
   * `idle`: no worker is ready, because none was needed. `unhealthy`: no worker is ready, and one has died or cannot start, or no workers are wanted.
   * `failing`: as `unhealthy`, and calls are refused until a start succeeds; the server goes on trying.
   */
  readonly state: 'starting' | 'ready' | 'idle' | 'unhealthy' | 'failing' | 'draining';
  readonly version: string;
  readonly pid: number;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly uptimeMs: number;
  /** The model that answers on `/`, else the first of `models`; if there are no models, an empty one with the name ''. */
  readonly model: ModelStatus;
  /** Every version of every model; the ones that are being unregistered come last. */
  readonly models: readonly ModelStatus[];
  /** The memory budgets, with figures; null without one. */
  readonly memory: BudgetStatus | null;
  /** Processes without an app that wait to become workers. */
  readonly spares: readonly SpareStatus[];
  /** Replies to calls so far, by `ok` or error code. */
  readonly replies: Readonly<Record<string, number>>;
  /** Clients that have not read all of their answers, and the bytes that are kept for them. */
  readonly unsent: { readonly clients: number; readonly bytes: number; readonly maxBytes: number };
  /** The store of jobs, and why it cannot be used now; null while it answers. */
  readonly jobs: { readonly store: string; readonly problem: string | null };
  readonly front: {
    readonly rssBytes: number;
    readonly eventLoopDelayMs: { readonly p50: number; readonly p99: number; readonly max: number };
  };
}

/** The work that a drain waits for. */
interface DrainWaits {
  readonly running: number;
  /** Accepted calls that have not begun, including those whose bodies still arrive. */
  readonly waiting: number;
  readonly workers: number;
  readonly webhooks: number;
}

/** `hint`: advice for the reader, such as how to stop at once; may be empty. */
export function drainText(limitMs: number, waits: DrainWaits, hint: string): string {
  const counts = [
    [waits.running, 'call', 'running'],
    [waits.waiting, 'call', 'waiting'],
    [waits.workers, 'worker', 'to stop'],
    [waits.webhooks, 'webhook', 'to send'],
  ] as const;
  const parts = counts
    .filter(([count]) => count > 0)
    .map(([count, noun, what]) => `${plural(count, noun)} ${what}`);
  const what = parts.length === 0 ? '' : `; waits for ${parts.join(', ')}`;
  return `draining (at most ${formatMs(limitMs)})${what}${hint === '' ? '' : `; ${hint}`}`;
}

const END_TEXTS: Readonly<Record<ServerEnd['reason'], string>> = {
  drained: 'stopped; every call was answered',
  cut: 'stopped; some calls were cut off',
  failed: 'stopped; no worker could start',
  killed: 'stopped at once',
};

export function endText({ reason }: ServerEnd): string {
  return END_TEXTS[reason];
}

export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
