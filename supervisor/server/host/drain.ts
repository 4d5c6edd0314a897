/**
 * Ends the calls and workers of all models, and divides the drain timeout between the two.
 *
 * 1. Readiness is `draining`; calls are still accepted for the drain lag, until load balancers have noticed.
 * 2. New calls are refused; accepted ones finish, or are cut off when only the time reserved for the workers is left.
 * 3. The workers stop: a message, then SIGTERM, then SIGKILL.
 */
import { ServeError, shuttingDown } from '../../../protocol/errors.js';
import { startLimit } from '../../machine/limit-timer.js';
import type { ManagedModel } from '../../models/model.js';
import { untilQuiet } from '../../models/waiters.js';
import type { Log } from '../../observe/log.js';
import { TERM_GRACE_MS, stopReserveMs } from '../../processes/worker-stop.js';
import { drainText } from '../../status/banner.js';

export interface CloseOptions {
  /** Time in which calls are still accepted before the drain refuses them; default 0. */
  readonly lagMs?: number;
  /** Appended to the log line about the drain, such as how to stop at once; default empty. */
  readonly hint?: string;
}

export interface Drain extends Required<CloseOptions> {
  /** All models; none is added during the drain. */
  readonly models: readonly ManagedModel[];
  readonly log: Pick<Log, 'info' | 'error'>;
  /** Longest time of the whole drain, including the lag. */
  readonly timeoutMs: number;
  readonly webhooksOwed: number;
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
  const sum = (count: (model: ManagedModel) => number): number =>
    models.reduce((all, one) => all + count(one), 0);
  for (const model of models) model.health.announceDrain();
  const waits = {
    running: sum(({ dispatcher }) => dispatcher.inFlight),
    waiting: sum(({ dispatcher }) => dispatcher.queued + dispatcher.arriving),
    workers: sum(({ crew }) => crew.workers.length),
    webhooks: given.webhooksOwed,
  };
  log.info(drainText(timeoutMs, waits, given.hint));
  const lagMs = Math.min(given.lagMs, timeoutMs);
  if (lagMs > 0) await new Promise<void>((resolve) => startLimit(lagMs, resolve));
  given.onRefusing();
  for (const model of models) model.refuseCalls();
  const hasShutdown = models.some((model) => model.hasShutdown);
  const cutAtMs = endAtMs - stopReserveMs(timeoutMs, hasShutdown);
  const isQuiet = await untilQuiet(() => models.every(({ dispatcher }) => dispatcher.isQuiet), cutAtMs);
  if (!isQuiet) {
    const running = sum(({ dispatcher }) => dispatcher.inFlight);
    const waiting = sum(({ dispatcher }) => dispatcher.queued);
    log.error(`the drain timeout passed; calls are cut off: ${running} running, ${waiting} waiting`);
    given.onCut();
    const lost = new ServeError('SERVE_WORKER_LOST', 'The server stopped before this call was finished.');
    for (const { dispatcher } of models) {
      dispatcher.failQueued(shuttingDown());
      dispatcher.failInFlight(lost, shuttingDown());
    }
  }
  const graceMs = Math.max(0, endAtMs - performance.now() - TERM_GRACE_MS);
  for (const model of models) model.close(graceMs);
  await given.workersClosed;
  // Calls that a dying worker had not begun went back to the queue.
  for (const { dispatcher } of models) dispatcher.failQueued(shuttingDown());
  return isQuiet ? 'drained' : 'cut';
}
