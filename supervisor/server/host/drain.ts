/**
 * Ends the calls and workers of all models, and divides the drain timeout between the two.
 *
 * 1. Readiness is `draining`; calls are still accepted for the drain lag, until load balancers have noticed.
 * 2. New calls are refused; accepted ones finish, or are cut off when only the time reserved for the workers is left.
 * 3. The workers stop: a message, then SIGTERM, then SIGKILL.
 */
import { ServeError, shuttingDown } from '../../../protocol/errors.js';
import type { Dispatcher } from '../../dispatch/dispatcher.js';
import { startLimit } from '../../machine/limit-timer.js';
import type { Model } from '../../models/model.js';
import { untilQuiet } from '../../models/waiters.js';
import type { Log } from '../../observe/log.js';
import { drainText, type DrainWaits } from '../../status/banner.js';
import { TERM_GRACE_MS, stopReserveMs } from '../../processes/worker-stop.js';

export interface CloseOptions {
  /** Time in which calls are still accepted before the drain refuses them; default 0. */
  readonly lagMs?: number;
  /** Appended to the log line about the drain, such as how to stop at once. */
  readonly hint?: string;
}

export interface DrainedModel extends Pick<Model, 'refuseCalls' | 'close' | 'hasShutdown'> {
  readonly crew: { readonly workers: { readonly length: number } };
  readonly health: Pick<Model['health'], 'announceDrain'>;
  readonly dispatcher: Pick<
    Dispatcher,
    'queued' | 'arriving' | 'inFlight' | 'isQuiet' | 'failQueued' | 'failInFlight'
  >;
}

export interface Drain {
  /** All models; none is added during the drain. */
  readonly models: readonly DrainedModel[];
  readonly log: Pick<Log, 'info' | 'error'>;
  /** Time in which calls are still accepted. */
  readonly lagMs: number;
  /** Longest time of the whole drain, including the lag. */
  readonly timeoutMs: number;
  readonly webhooksOwed: number;
  /** Appended to the log line that lists the work left; may be empty. */
  readonly hint: string;
  /** Resolves when every worker has ended. */
  readonly workersClosed: Promise<void>;
  /** Calls are refused from now on. */
  onRefusing(): void;
  /** Running calls are about to be cut off. */
  onCut(): void;
}

/** Resolves when every worker has ended. `drained`: every call was answered. */
export async function drain({ models, log, timeoutMs, ...given }: Drain): Promise<'drained' | 'cut'> {
  const endAtMs = performance.now() + timeoutMs;
  for (const model of models) model.health.announceDrain();
  log.info(drainText(timeoutMs, waitsOf(models, given.webhooksOwed), given.hint));
  if (given.lagMs > 0) await delay(Math.min(given.lagMs, timeoutMs));
  given.onRefusing();
  for (const model of models) model.refuseCalls();
  const isQuiet = await untilQuiet(
    () => models.every(({ dispatcher }) => dispatcher.isQuiet),
    endAtMs -
      stopReserveMs(
        timeoutMs,
        models.some(({ hasShutdown }) => hasShutdown),
      ),
  );
  if (!isQuiet) cutOff(models, log, given.onCut);
  const graceMs = Math.max(0, endAtMs - performance.now() - TERM_GRACE_MS);
  for (const model of models) model.close(graceMs);
  await given.workersClosed;
  // Calls that a dying worker had not begun went back to the queue.
  for (const { dispatcher } of models) dispatcher.failQueued(shuttingDown());
  return isQuiet ? 'drained' : 'cut';
}

function waitsOf(models: readonly DrainedModel[], webhooks: number): DrainWaits {
  return {
    running: sum(models, ({ dispatcher }) => dispatcher.inFlight),
    waiting: sum(models, ({ dispatcher }) => dispatcher.queued + dispatcher.arriving),
    workers: sum(models, ({ crew }) => crew.workers.length),
    webhooks,
  };
}

function sum(models: readonly DrainedModel[], count: (model: DrainedModel) => number): number {
  return models.reduce((total, model) => total + count(model), 0);
}

function cutOff(models: readonly DrainedModel[], log: Drain['log'], onCut: () => void): void {
  const running = sum(models, ({ dispatcher }) => dispatcher.inFlight);
  const waiting = sum(models, ({ dispatcher }) => dispatcher.queued);
  log.error(`the drain timeout passed; calls are cut off: ${running} running, ${waiting} waiting`);
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
