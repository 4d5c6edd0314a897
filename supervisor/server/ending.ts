/**
 * How a server ends, and with what: by a drain, because none of its models can serve, or at once.
 * Before: the server is open. After: every part is closed, and `ended` says how it came; the first end is the one that
 * counts.
 */
import type { IntervalHistogram } from 'node:perf_hooks';
import { ServeError } from '../../protocol/errors.js';
import type { UnsentAnswers } from '../http/socket/unsent-answers.js';
import type { KeptJobs } from '../jobs/kept-jobs.js';
import type { Log } from '../observe/log.js';
import { formatMs } from '../options/units.js';
import type { OrphanGuard } from '../processes/orphan-guard.js';
import type { ModelStore } from '../store/model-store.js';
import type { Webhooks } from '../webhooks/webhooks.js';
import { endText } from '../status/banner.js';
import { deferred } from '../machine/deferred.js';
import { drain } from './drain.js';
import type { Listeners } from './listeners.js';
import type { ServedModels } from './models/served-models.js';
import type { CloseOptions } from './server-handle.js';
import type { ServerEnd } from '../status/server-status.js';
import type { ServerLogs } from './logs.js';

/** What is closed at the end. */
export interface EndingServer {
  readonly drainTimeoutMs: number;
  readonly log: Log;
  readonly logs: Pick<ServerLogs, 'close'>;
  readonly served: ServedModels;
  readonly jobs: KeptJobs;
  readonly webhooks: Webhooks;
  readonly unsent: UnsentAnswers;
  readonly guard: OrphanGuard;
  readonly eventLoopDelay: IntervalHistogram;
  readonly metrics: { stop(): void };
  readonly listeners: Pick<Listeners, 'close' | 'destroy'>;
  readonly store: Pick<ModelStore, 'close'>;
}

/** How long the last lines of workers and log may take to leave: a reader that takes none must not delay the end. */
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

  /** Replies end their connections: a new one could find nobody. */
  get lastReplies(): boolean {
    return this.#lastReplies;
  }

  /** Calls and workers come to their end. Only the first call says how. */
  drain({ lagMs = 0, hint = '' }: CloseOptions): void {
    if (this.#draining === null) this.#draining = this.#drain(lagMs, hint);
  }

  /** No model can serve. Held callers have been answered; the answers still reach them. */
  fail(error: ServeError): void {
    void this.#finish({ reason: 'failed', error }, performance.now() + this.#server.drainTimeoutMs);
  }

  /** Nothing is waited for. */
  kill(): void {
    this.#reportUnfinished();
    this.killNow();
    void this.#tearDown({ reason: 'killed', error: null });
  }

  /** Workers are killed and connections cut, synchronously: also what the end of the process does. */
  readonly killNow = (): void => {
    this.#server.served.killAll();
    this.#server.listeners.destroy();
  };

  async #drain(lagMs: number, hint: string): Promise<void> {
    const { drainTimeoutMs, log, served, webhooks } = this.#server;
    const endAtMs = performance.now() + drainTimeoutMs;
    served.unwatch();
    served.registry.close();
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

  /** Their callers were told that they are taken, and hear nothing more. */
  #reportUnfinished(): void {
    const { jobs, log } = this.#server;
    const ids = jobs.unfinished();
    if (ids.length > 0) log.error({ jobs: ids }, `background jobs cut off: ${ids.join(', ')}`);
  }

  async #finish(end: ServerEnd, endAtMs: number): Promise<void> {
    this.#lastReplies = true;
    await Promise.all([this.#server.listeners.close(), this.#drainWebhooks(endAtMs - performance.now())]);
    await this.#tearDown(end);
  }

  async #drainWebhooks(limitMs: number): Promise<void> {
    const { log, webhooks } = this.#server;
    const { owed } = webhooks;
    if (owed > 0) log.info(`sending ${owed} webhooks (at most ${formatMs(Math.max(0, limitMs))})`);
    await webhooks.drain(limitMs);
  }

  /** The first end is the one that counts: a kill during a drain, a drain after a failed start. */
  async #tearDown(end: ServerEnd): Promise<void> {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const { served, store, jobs, webhooks, unsent, guard, eventLoopDelay, metrics, log, logs } = this.#server;
    served.startUp.end(
      end.error ?? new ServeError('SERVE_SHUTTING_DOWN', 'The server ended before it was ready.'),
    );
    process.off('exit', this.killNow);
    served.close();
    jobs.close();
    served.killAll();
    store.close();
    webhooks.close();
    unsent.close();
    guard.close();
    eventLoopDelay.disable();
    metrics.stop();
    log.info(endText(end));
    await logs.close(FLUSH_MS);
    this.#ended.resolve(end);
  }
}
