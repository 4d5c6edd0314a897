/**
 * Everything that serves one model: its queue, its slots, its options, its health.
 * Before: the HTTP dialects bring jobs. After: slots run workers; news comes back through the listeners below.
 */
import { shuttingDown, type ServeError } from '../../protocol/errors.js';
import type { LoadedInfo, Route } from '../../protocol/messages.js';
import { Dispatcher, type Supply } from '../dispatch/dispatcher.js';
import type { Job } from '../dispatch/job.js';
import type { SendAhead } from '../dispatch/send-ahead.js';
import type { Log } from '../observe/log.js';
import { withAppConfig, type ModelOptions, type ResolvedModelOptions } from '../options/resolve.js';
import type { Placement } from '../machine/placement.js';
import { Slot, type SlotListener } from '../slots/slot.js';
import type { SpawnGate } from '../slots/spawn-gate.js';
import type { WorkerDeath } from '../processes/worker-death.js';
import { newWebhookId } from '../webhooks/webhook.js';
import type { Webhooks } from '../webhooks/webhooks.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import type { RetireLimits, WorkerLimits } from '../processes/worker-listener.js';
import { ModelLog } from './model-log.js';
import { healthOf, hopelessness, noWorker, readyInMs, type Health } from './prospects.js';
import { Waiters } from './waiters.js';
import { StartNews, startingWorkers, type StartTeller } from './start-news.js';
import { startWorker, workerLimits, type ModelSpec, type WorkerResources } from './start-worker.js';

/** Shared by all models of a server. */
export interface ServerResources extends WorkerResources {
  readonly gate: SpawnGate;
  readonly log: Log;
  readonly webhooks: Pick<Webhooks, 'send'>;
  /** Told what workers are doing when a start takes its time. */
  readonly startTeller: StartTeller;
  /** The rule of `dispatch/send-ahead.ts` unless given; bench/send-ahead.ts compares others with it. */
  readonly sendAhead: SendAhead | undefined;
}

export interface ModelListener {
  /** A worker is ready for the first time. */
  onFirstReady(): void;
  /** No worker can start any more. `everReady`: the model has served before. */
  onLatched(error: ServeError, everReady: boolean): void;
  /** Every slot is closed. */
  onClosed(): void;
}

/** The routes of an app, by path. */
export type Routes = ReadonlyMap<string, Route>;

export class Model {
  readonly spec: ModelSpec;
  readonly dispatcher: Dispatcher;
  readonly slots: readonly Slot[];
  readonly #resolved: ResolvedModelOptions;
  readonly #resources: ServerResources;
  readonly #listener: ModelListener;
  readonly #log: ModelLog;
  readonly #startNews: StartNews;
  #options: ModelOptions;
  #routes: Routes | null = null;
  #example = '';
  #ready: WorkerHandle[] = [];
  /** A worker of the present code was ready. */
  #hasServed = false;
  #latched: ServeError | null = null;
  #drain: 'no' | 'announced' | 'refusing' = 'no';
  #lastInitMs: number | null = null;
  #firstReadyAtMs: number | null = null;
  #idleSinceMs = performance.now();
  readonly #untilReady = new Waiters(() => this.#findReady());
  readonly #untilLoaded = new Waiters(() => this.#findRoutes());

  constructor(
    spec: ModelSpec,
    resolved: ResolvedModelOptions,
    placements: readonly Placement[],
    resources: ServerResources,
    listener: ModelListener,
  ) {
    this.spec = spec;
    this.#resolved = resolved;
    this.#options = resolved.options;
    this.#resources = resources;
    this.#listener = listener;
    this.#log = new ModelLog(resources.log);
    const limitMs = (): number => this.#options.initTimeout;
    this.#startNews = new StartNews(resources.startTeller, () => startingWorkers(this.slots), limitMs);
    this.dispatcher = new Dispatcher(this.#supply(), dispatchLimits(resolved.options), resources.sendAhead);
    this.slots = placements.map((placement, index) => this.#newSlot(index, placement));
  }

  /** Options in force: the operator's over the app's. */
  get options(): ModelOptions {
    return this.#options;
  }

  /** The app's routes; null until a worker has loaded it. */
  get routes(): Routes | null {
    return this.#routes;
  }

  /** A sample input as JSON, to show a person; empty if the app has none. */
  get example(): string {
    return this.#example;
  }

  get readyWorkers(): number {
    return this.#ready.length;
  }

  get health(): Health {
    return healthOf({
      isDraining: this.#drain !== 'no',
      readyWorkers: this.#ready.length,
      isLatched: this.#latched !== null,
      hasServed: this.#hasServed,
      hasLost: this.slots.some((slot) => slot.lastDeath !== null),
    });
  }

  /** When a call last ended in a worker, or a worker came back, on the monotonic clock; at first, the server's start. */
  get idleSinceMs(): number {
    return this.#idleSinceMs;
  }

  noteIdle(): void {
    this.#idleSinceMs = performance.now();
  }

  /** Calls that the workers hold, those that nobody waits for any more included. */
  get heldCalls(): number {
    return this.#workers.reduce((sum, worker) => sum + worker.load, 0);
  }

  /** When the oldest of the calls that run now began; null if none runs. */
  get oldestBeganAtMs(): number | null {
    const begun = this.#workers.map((worker) => worker.callBeganAtMs).filter((atMs) => atMs !== null);
    return begun.length === 0 ? null : Math.min(...begun);
  }

  /** Resolves once a worker is ready, or when `givenUp` does. @throws SERVE_NOT_READY, SERVE_SHUTTING_DOWN */
  async whenReady(givenUp: Promise<unknown>): Promise<void> {
    await this.#untilReady.wait(givenUp);
  }

  /**
   * The routes, once a worker has loaded the app; null when `givenUp` settles first. Those who wait go on in the order
   * they came. For calls that have a place: a drain lets them wait. @throws SERVE_NOT_READY, SERVE_SHUTTING_DOWN
   */
  whenLoaded(givenUp: Promise<unknown>): Promise<Routes | null> {
    return this.#untilLoaded.wait(givenUp);
  }

  start(): void {
    for (const slot of this.slots) slot.start();
  }

  /**
   * The app has changed: every slot begins anew, with what is on disk now, and nothing that its code said holds any
   * more. Calls are held meanwhile. Of no effect once the server drains.
   */
  replaceWorkers(limits: RetireLimits): void {
    if (this.#drain !== 'no') return;
    this.#hasServed = false;
    this.#latched = null;
    this.#log.forgetErrors();
    this.#routes = null;
    this.#options = this.#resolved.options;
    this.dispatcher.limits = dispatchLimits(this.#options);
    for (const slot of this.slots) slot.replace(limits);
  }

  /** Health says draining from now on; calls are still taken. */
  announceDrain(): void {
    if (this.#drain === 'no') this.#drain = 'announced';
  }

  /** New calls are refused from now on; those taken go on, conversations until their app waits for the client. */
  refuseCalls(): void {
    this.#drain = 'refusing';
    for (const worker of this.#workers) worker.endConversations(shuttingDown());
    this.#wakeWaiters();
  }

  /** Nothing is waiting, arriving or running. */
  get quiet(): boolean {
    const { dispatcher } = this;
    return dispatcher.queued + dispatcher.arriving + dispatcher.inFlight === 0;
  }

  /** Worker processes that are there, in whatever state. */
  get workerCount(): number {
    return this.#workers.length;
  }

  /** Stops every worker: a message, SIGTERM after `graceMs`, then SIGKILL. */
  close(graceMs: number): void {
    for (const slot of this.slots) slot.close(graceMs);
    this.#checkClosed();
  }

  /** SIGKILL to every worker's group, synchronously. */
  killAll(): void {
    for (const slot of this.slots) slot.kill();
  }

  #supply(): Supply {
    return {
      readyWorkers: () => this.#ready,
      refusal: () => this.#refusal(),
      hopeless: () => this.#hopeless(),
      readyInMs: () => readyInMs(this.slots, this.#lastInitMs, performance.now()),
    };
  }

  #refusal(): ServeError | null {
    return this.#drain === 'refusing' ? shuttingDown() : this.#hopeless();
  }

  #findReady(): true | null {
    const refusal = this.#refusal();
    if (refusal !== null) throw refusal;
    return this.#ready.length > 0 ? true : null;
  }

  #findRoutes(): Routes | null {
    const hopeless = this.#hopeless();
    if (hopeless !== null) throw hopeless;
    return this.#routes;
  }

  #wakeWaiters(): void {
    this.#untilReady.wake();
    this.#untilLoaded.wake();
  }

  #hopeless(): ServeError | null {
    return hopelessness(this.slots, this.#latched !== null);
  }

  #newSlot(index: number, placement: Placement): Slot {
    const listener: SlotListener = {
      onLoaded: (info) => this.#onLoaded(info),
      onReady: () => this.#onReady(index),
      onFinished: (job, runMs) => {
        this.noteIdle();
        this.dispatcher.finished(job, runMs);
      },
      onLost: (jobs, error) => {
        this.noteIdle();
        this.#refreshReady(); // before anything is offered to the dead
        this.dispatcher.lost(jobs, error);
      },
      onAppLog: (level, message, fields, requestId) =>
        this.#log.appLine(index, level, message, fields, requestId),
      onWebhook: (order, body, onEnd) =>
        this.#resources.webhooks.send({ ...order, id: newWebhookId(), body }, onEnd),
      onCallError: (job, error) => this.#log.callError(index, job.call, error),
      onTransition: (from, to, event) => {
        this.#log.transition(index, from, to, event);
        this.#refreshReady();
      },
      onSlotChange: (slot, death) => this.#onSlotChange(slot, death),
    };
    return new Slot({
      index,
      device: placement.device,
      gate: this.#resources.gate,
      rules: () => ({ restartLimit: this.#options.restartLimit, everReady: this.#hasServed }),
      spawn: (workerListener) =>
        startWorker(this.spec, this.#options, this.#resources, { index, placement }, workerListener),
      listener,
    });
  }

  #onLoaded(info: LoadedInfo): WorkerLimits {
    this.#options = withAppConfig(this.#resolved, info.modelOptions, this.spec.app);
    this.dispatcher.limits = dispatchLimits(this.#options);
    this.#example = info.example;
    const routes = new Map(info.routes.map((route) => [route.path, route]));
    this.#routes = routes;
    this.dispatcher.dropUnfit((job) => fits(job, routes));
    this.#wakeWaiters();
    return workerLimits(this.#options, this.#resources.maxOutputBytes);
  }

  #onReady(index: number): void {
    const worker = this.slots[index]?.worker as WorkerHandle;
    this.#lastInitMs = worker.initMs;
    this.#refreshReady();
    this.#log.ready(index, worker.pid, worker.initMs);
    this.#hasServed = true;
    if (this.#firstReadyAtMs === null) {
      this.#firstReadyAtMs = performance.now();
      this.#listener.onFirstReady();
    } else this.noteIdle(); // one that died or was replaced is there again
    this.dispatcher.pump();
  }

  get firstReadyAtMs(): number | null {
    return this.#firstReadyAtMs;
  }

  get #workers(): WorkerHandle[] {
    return this.slots.map((slot) => slot.worker).filter((worker) => worker !== null);
  }

  #refreshReady(): void {
    this.#ready = this.#workers.filter((worker) => worker.state === 'ready');
    this.#startNews.update();
    this.#wakeWaiters();
  }

  #onSlotChange(slot: Slot, death: WorkerDeath | null): void {
    this.#refreshReady();
    if (death !== null) this.#log.death(slot, death);
    if (slot.state.name === 'latched') this.#checkLatched(slot.state.error);
    if (slot.state.name === 'closed') this.#checkClosed();
  }

  #checkLatched(error: ServeError): void {
    if (this.#latched !== null || !this.slots.every(({ state }) => state.name === 'latched')) return;
    this.#latched = error;
    this.#wakeWaiters();
    this.dispatcher.failQueued(noWorker());
    this.#listener.onLatched(error, this.#firstReadyAtMs !== null);
  }

  #checkClosed(): void {
    if (this.slots.every(({ state }) => state.name === 'closed')) this.#listener.onClosed();
  }
}

/** Whether a job that waits can still be answered, now that the app is loaded, perhaps anew. */
function fits({ call, conversation }: Job, routes: Routes): boolean {
  const route = routes.get(call.route);
  return route !== undefined && (route.kind === 'websocket') === (conversation !== null);
}

function dispatchLimits(options: ModelOptions): {
  queueSize: number;
  queueBytes: number;
  queueTimeoutMs: number;
} {
  return {
    queueSize: options.queueSize,
    queueBytes: options.queueBytes,
    queueTimeoutMs: options.queueTimeout,
  };
}
