/**
 * The orderly end of a model's calls and workers, and how the drain timeout is shared between the two.
 *
 * 1. Health says draining; calls are taken a little longer, until load balancers have noticed.
 * 2. Calls are refused; what is accepted is finished, or cut off when only the workers' share is left.
 * 3. The workers stop: a message, SIGTERM, SIGKILL.
 */
import { ServeError, shuttingDown } from '../../protocol/errors.js';
import type { Dispatcher } from '../dispatch/dispatcher.js';
import { startLimit } from '../machine/limit-timer.js';
import type { Model } from '../models/model.js';
import { untilQuiet } from '../models/quiet.js';
import type { Log } from '../observe/log.js';
import { drainText, type DrainWaits } from './banner.js';
import { TERM_GRACE_MS } from '../processes/worker-handle.js';
import type { RetireLimits } from '../processes/worker-listener.js';

/** Kept at the end of a drain for the workers' own shutdown. */
const WORKER_STOP_RESERVE_MS = 5000;

export interface DrainedModel extends Pick<
  Model,
  'announceDrain' | 'refuseCalls' | 'quiet' | 'close' | 'workerCount'
> {
  readonly dispatcher: Pick<Dispatcher, 'queued' | 'arriving' | 'inFlight' | 'failQueued' | 'failInFlight'>;
}

export interface Drain {
  readonly model: DrainedModel;
  readonly log: Pick<Log, 'info' | 'error'>;
  /** How long calls are still accepted. */
  readonly lagMs: number;
  /** How long the whole drain may take, the lag included. */
  readonly timeoutMs: number;
  readonly webhooksOwed: number;
  /** Ends the line of the log that says what is waited for; may be empty. */
  readonly hint: string;
  /** Resolves when every worker has gone. */
  readonly workersClosed: Promise<void>;
  /** Calls are refused from now on. */
  onRefusing(): void;
  /** The calls that run are about to be cut off. */
  onCut(): void;
}

/** Resolves when every worker has gone. `drained`: every call was answered. */
export async function drain({ model, log, timeoutMs, ...given }: Drain): Promise<'drained' | 'cut'> {
  const endAtMs = performance.now() + timeoutMs;
  model.announceDrain();
  log.info(drainText(timeoutMs, waitsOf(model, given.webhooksOwed), given.hint));
  if (given.lagMs > 0) await delay(Math.min(given.lagMs, timeoutMs));
  given.onRefusing();
  model.refuseCalls();
  const quiet = await untilQuiet(model, endAtMs - stopReserveMs(timeoutMs));
  if (!quiet) cutOff(model, log, given.onCut);
  model.close(Math.max(0, endAtMs - performance.now() - TERM_GRACE_MS));
  await given.workersClosed;
  // A worker that died in the meantime gave back what it had not begun.
  model.dispatcher.failQueued(shuttingDown());
  return quiet ? 'drained' : 'cut';
}

function waitsOf({ dispatcher, workerCount }: DrainedModel, webhooks: number): DrainWaits {
  const { inFlight, queued, arriving } = dispatcher;
  return { running: inFlight, waiting: queued + arriving, workers: workerCount, webhooks };
}

/** The same shares for one worker that has to make room for another. */
export function retireLimits(timeoutMs: number): RetireLimits {
  const reserveMs = stopReserveMs(timeoutMs);
  return { finishMs: timeoutMs - reserveMs, graceMs: Math.max(0, reserveMs - TERM_GRACE_MS) };
}

function cutOff({ dispatcher }: DrainedModel, log: Drain['log'], onCut: () => void): void {
  const { queued, inFlight } = dispatcher;
  log.error(
    `the drain timeout passed with ${inFlight} calls running and ${queued} waiting; they are cut off`,
  );
  onCut();
  dispatcher.failQueued(shuttingDown());
  dispatcher.failInFlight(
    new ServeError('SERVE_WORKER_LOST', 'The server stopped before this call was finished.'),
    shuttingDown(),
  );
}

function stopReserveMs(timeoutMs: number): number {
  return Math.min(timeoutMs / 5, WORKER_STOP_RESERVE_MS);
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => startLimit(ms, resolve));
}
