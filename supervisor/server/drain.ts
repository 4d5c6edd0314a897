/**
 * The orderly end of all models' calls and workers, and how the drain timeout is shared between the two.
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
import { drainText, type DrainWaits } from '../status/banner.js';
import { TERM_GRACE_MS, stopReserveMs } from '../processes/worker-stop.js';

export interface DrainedModel extends Pick<
  Model,
  'announceDrain' | 'refuseCalls' | 'quiet' | 'close' | 'workerCount'
> {
  readonly dispatcher: Pick<Dispatcher, 'queued' | 'arriving' | 'inFlight' | 'failQueued' | 'failInFlight'>;
}

export interface Drain {
  /** All that there are; none comes while they drain. */
  readonly models: readonly DrainedModel[];
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
export async function drain({ models, log, timeoutMs, ...given }: Drain): Promise<'drained' | 'cut'> {
  const endAtMs = performance.now() + timeoutMs;
  for (const model of models) model.announceDrain();
  log.info(drainText(timeoutMs, waitsOf(models, given.webhooksOwed), given.hint));
  if (given.lagMs > 0) await delay(Math.min(given.lagMs, timeoutMs));
  given.onRefusing();
  for (const model of models) model.refuseCalls();
  const isQuiet = await untilQuiet(
    () => models.every(({ quiet }) => quiet),
    endAtMs - stopReserveMs(timeoutMs),
  );
  if (!isQuiet) cutOff(models, log, given.onCut);
  const graceMs = Math.max(0, endAtMs - performance.now() - TERM_GRACE_MS);
  for (const model of models) model.close(graceMs);
  await given.workersClosed;
  // A worker that died in the meantime gave back what it had not begun.
  for (const { dispatcher } of models) dispatcher.failQueued(shuttingDown());
  return isQuiet ? 'drained' : 'cut';
}

function waitsOf(models: readonly DrainedModel[], webhooks: number): DrainWaits {
  return {
    running: sum(models, ({ dispatcher }) => dispatcher.inFlight),
    waiting: sum(models, ({ dispatcher }) => dispatcher.queued + dispatcher.arriving),
    workers: sum(models, ({ workerCount }) => workerCount),
    webhooks,
  };
}

function sum(models: readonly DrainedModel[], count: (model: DrainedModel) => number): number {
  return models.reduce((total, model) => total + count(model), 0);
}

function cutOff(models: readonly DrainedModel[], log: Drain['log'], onCut: () => void): void {
  const running = sum(models, ({ dispatcher }) => dispatcher.inFlight);
  const waiting = sum(models, ({ dispatcher }) => dispatcher.queued);
  log.error(
    `the drain timeout passed with ${running} calls running and ${waiting} waiting; they are cut off`,
  );
  onCut();
  const lost = new ServeError('SERVE_WORKER_LOST', 'The server stopped before this call was finished.');
  for (const { dispatcher } of models) {
    dispatcher.failQueued(shuttingDown());
    dispatcher.failInFlight(lost, shuttingDown());
  }
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => startLimit(ms, resolve));
}
