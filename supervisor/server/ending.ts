/**
 * Ends a server: by a drain, because no model can serve, or at once. Closes every part, then resolves `ended` with the
 * reason. Only the first end counts.
 */
import type { IntervalHistogram } from 'node:perf_hooks';
import { ServeError } from '../../protocol/errors.js';
import type { MemoryBudget } from '../budget/memory-budget.js';
import type { UnsentAnswers } from '../http/socket/unsent-answers.js';
import type { KeptJobs } from '../jobs/kept-jobs.js';
import type { Log } from '../observe/log.js';
import { formatMs } from '../options/units.js';
import type { OrphanGuard } from '../processes/orphan-guard.js';
import type { SpareProcesses } from '../processes/spare-processes.js';
import type { ModelStore } from '../store/model-store.js';
import type { Webhooks } from '../webhooks/webhooks.js';
import { endText } from '../status/banner.js';
import { deferred } from '../machine/deferred.js';
import { drain } from './drain.js';
import type { JobWebhooks } from './job-webhooks.js';
import type { Listeners } from './listeners.js';
import type { ServedModels } from './models/served-models.js';
import type { ReadyFile } from './ready-file.js';
import type { CloseOptions } from './server-handle.js';
import type { LiveFeed } from '../status/live/live-feed.js';
import type { ServerEnd } from '../status/server-status.js';
import type { ServerLogs } from './logs.js';

/** The parts that are closed at the end. */
export interface EndingServer {
  readonly drainTimeoutMs: number;
  readonly log: Log;
  readonly logs: Pick<ServerLogs, 'close'>;
  readonly served: ServedModels;
  readonly jobs: KeptJobs;
  readonly webhooks: Webhooks;
  readonly jobWebhooks: Pick<JobWebhooks, 'close'>;
  readonly unsent: UnsentAnswers;
  readonly guard: OrphanGuard;
  readonly spares: Pick<SpareProcesses, 'close'>;
  readonly memory: Pick<MemoryBudget, 'close'> | null;
  readonly eventLoopDelay: IntervalHistogram;
  readonly metrics: { stop(): void };
  /** Null: there is no page at `/`. */
  readonly live: Pick<LiveFeed, 'end' | 'stop'> | null;
  readonly listeners: Pick<Listeners, 'close' | 'destroy'>;
  readonly readyFile: Pick<ReadyFile, 'remove'>;
  readonly store: Pick<ModelStore, 'close'>;
}

/** Longest time to flush the last lines of workers and log: a reader that has stopped must not delay the end. */
const FLUSH_MS = 500;

export class Ending {
  readonly #server: EndingServer;
  readonly #ended = deferred<ServerEnd>();
  #draining: Promise<void> | null = null;
  #hasEnded = false;
  #lastReplies = false;

  constructor(server: EndingServer) {
    this.#server = server;
  }

  /** Resolves when every part is closed. */
  get ended(): Promise<ServerEnd> {
    return this.#ended.promise;
  }

  get isDraining(): boolean {
    return this.#draining !== null;
  }

  /** Whether replies close their connections, so that no request arrives on one after the server has ended. */
  get lastReplies(): boolean {
    return this.#lastReplies;
  }

  /** Drains calls and workers. Only the first call's options count. */
  drain({ lagMs = 0, hint = '' }: CloseOptions): void {
    if (this.#draining === null) this.#draining = this.#drain(lagMs, hint);
  }

  /** Ends because no model can serve. Waiting callers have been answered; their answers are still sent. */
  fail(error: ServeError): void {
    void this.#finish({ reason: 'failed', error }, performance.now() + this.#server.drainTimeoutMs);
  }

  /** Ends at once. */
  kill(): void {
    this.#reportUnfinished();
    this.killNow();
    void this.#tearDown({ reason: 'killed', error: null });
  }

  /** Kills workers and cuts connections, synchronously; also runs when the process exits. */
  readonly killNow = (): void => {
    this.#server.spares.close();
    this.#server.served.killAll();
    this.#server.listeners.destroy();
  };

  async #drain(lagMs: number, hint: string): Promise<void> {
    const { drainTimeoutMs, log, served, spares, jobs, webhooks } = this.#server;
    const endAtMs = performance.now() + drainTimeoutMs;
    spares.close();
    served.unwatch();
    served.registry.close();
    jobs.drain(); // first, so that the drain waits for no job that is kept
    const reason = await drain({
      models: served.all,
      log,
      lagMs,
      timeoutMs: drainTimeoutMs,
      hint,
      webhooksOwed: webhooks.owed,
      workersClosed: served.untilClosed(),
      onRefusing: () => (this.#lastReplies = true),
      onCut: () => this.#reportUnfinished(),
    });
    await this.#finish({ reason, error: null }, endAtMs);
  }

  /**
   * Logs the background jobs that are cut off: their callers were answered at their start. Jobs that wait in a store which
   * outlives the server are not among them.
   */
  #reportUnfinished(): void {
    const { jobs, log } = this.#server;
    const ids = jobs.unfinished();
    if (ids.length > 0) log.error({ jobs: ids }, `background jobs cut off: ${ids.join(', ')}`);
  }

  async #finish(end: ServerEnd, endAtMs: number): Promise<void> {
    this.#lastReplies = true;
    if (end.reason !== 'killed') this.#server.live?.end(end.reason); // its viewers would never leave by themselves
    this.#server.jobWebhooks.close();
    await this.#server.jobs.stop(); // answers those who wait for a job
    await Promise.all([this.#server.listeners.close(), this.#drainWebhooks(endAtMs - performance.now())]);
    await this.#tearDown(end);
  }

  async #drainWebhooks(limitMs: number): Promise<void> {
    const { log, webhooks } = this.#server;
    const { owed } = webhooks;
    if (owed > 0) log.info(`sending ${owed} webhooks (at most ${formatMs(Math.max(0, limitMs))})`);
    await webhooks.drain(limitMs);
  }

  /** Closes everything, once: there may be a kill during a drain, or a drain after a failed start. */
  async #tearDown(end: ServerEnd): Promise<void> {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const {
      served,
      readyFile,
      store,
      jobs,
      webhooks,
      jobWebhooks,
      unsent,
      guard,
      spares,
      memory,
      eventLoopDelay,
      metrics,
      live,
      log,
      logs,
    } = this.#server;
    served.startUp.end(
      end.error ?? new ServeError('SERVE_SHUTTING_DOWN', 'The server ended before it was ready.'),
    );
    process.off('exit', this.killNow);
    readyFile.remove();
    served.close();
    spares.close();
    memory?.close();
    served.killAll();
    jobWebhooks.close();
    webhooks.close();
    await jobs.stop();
    await jobs.close();
    store.close();
    unsent.close();
    guard.close();
    eventLoopDelay.disable();
    metrics.stop();
    live?.stop();
    log.info(endText(end));
    await logs.close(FLUSH_MS);
    this.#ended.resolve(end);
  }
}
