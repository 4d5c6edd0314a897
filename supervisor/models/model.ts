/**
 * One model: its queue, its slots, the description of its app, its health.
 * Before: the HTTP dialects submit calls; the registry sets the number of workers. After: slots run workers, whose events
 * `slot-factory.ts` handles.
 */
import { shuttingDown, type ServeError } from '../../protocol/errors.js';
import type { LoadedInfo } from '../../protocol/wire/messages.js';
import { Dispatcher, type Supply } from '../dispatch/dispatcher.js';
import type { FedModel } from '../jobs/model-feed.js';
import type { ModelOptions } from '../options/resolve.js';
import type { Placement } from '../machine/placement.js';
import type { Slot } from '../slots/slot.js';
import type { RetireLimits } from '../processes/worker-listener.js';
import type { Routes } from './app-description.js';
import { ModelInBudget } from './budgeted-model.js';
import { Generations } from './generations.js';
import { ModelChanges } from './model-changes.js';
import type { ModelListener, ServerResources } from './model-resources.js';
import { ModelLog } from './model-log.js';
import { ModelHealth } from './model-health.js';
import type { ModelParts } from './model-parts.js';
import type { Health } from './slot-summary.js';
import { OptionsApplier, dispatchLimits } from './options-applier.js';
import type { Outcome } from './outcome.js';
import { SlotSet } from './slot-set.js';
import type { Standstill } from './standstill.js';
import { SlowStarts, startingWorkers } from './slow-starts.js';
import type { ModelSpec } from './model-spec.js';
import { Standbys } from './standbys.js';
import { WorkerEvents } from './worker-events.js';
import { Scaler } from './scaler.js';
import type { ScalingChanges } from './scaling-changes.js';
import type { ScalingRules } from '../scaling/policy.js';
import type { WorkerBounds } from './bounds.js';

const NO_ROUTES: ReadonlyMap<string, number> = new Map();

/** The rules by which a model scales itself, and the changes that this made. */
export interface ModelScaling {
  readonly rules: ScalingRules;
  readonly changes: ScalingChanges;
  /** Expected time from the start of a process until its worker is ready. */
  readonly startMs: number;
}

export class Model {
  readonly dispatcher: Dispatcher;
  readonly #generations: Generations;
  readonly #slots: SlotSet;
  readonly #listener: ModelListener;
  readonly #health: ModelHealth;
  readonly #applier: OptionsApplier;
  readonly #changes: ModelChanges;
  readonly #scaler: Scaler;
  readonly #memory: ServerResources['memory'];
  readonly #inBudget: ModelInBudget;
  #isClosed = false;
  #idleSinceMs = performance.now();

  /** Has no slots at first, and refuses calls until `start` or `scale`. */
  constructor(spec: ModelSpec, resources: ServerResources, listener: ModelListener) {
    this.#memory = resources.memory;
    this.#listener = {
      ...listener,
      onClosed: () => {
        this.#memory?.remove(this.#inBudget);
        listener.onClosed();
      },
    };
    this.#generations = new Generations(spec);
    this.dispatcher = new Dispatcher(
      this.#supply(),
      dispatchLimits(spec.resolved.options, false),
      resources.budget,
      resources.sendAhead,
      resources.jobs.openFeed(this.#fed(resources)),
    );
    this.#slots = new SlotSet(
      resources.devices,
      (worker) => this.#generations.mayServe(worker),
      (index, placement) => factory.newSlot(index, placement),
    );
    this.#health = new ModelHealth(this.#slots, () => this.routes, resources.watch);
    const parts = this.#parts(resources);
    this.#applier = new OptionsApplier(parts);
    const standbys = new Standbys(parts);
    this.#scaler = new Scaler(parts, standbys);
    const factory = new WorkerEvents(parts, this.#applier, this.#scaler, standbys);
    this.#changes = new ModelChanges(parts, this.#applier, this.#scaler, standbys);
    this.#inBudget = new ModelInBudget(parts, this.#scaler, standbys);
    this.#memory?.add(this.#inBudget);
  }

  /** The spec that the next worker is started with. */
  get spec(): ModelSpec {
    return this.#generations.newest.spec;
  }

  /** Options in force: the operator's over the app's. */
  get options(): ModelOptions {
    return this.#generations.inForce.options;
  }

  /** The routes of `info` by path; null until a worker has loaded the app. */
  get routes(): Routes | null {
    return this.#generations.inForce.routes;
  }

  /** The app's description of itself; null until a worker has loaded it. */
  get info(): LoadedInfo | null {
    return this.#generations.inForce.info;
  }

  /** In the order of their indices, including those that are being retired. */
  get slots(): readonly Slot[] {
    return this.#slots.all;
  }

  /** Number of workers that are wanted now. */
  get wantedWorkers(): number {
    return this.#health.wanted;
  }

  /** Whether it may have workers at all; if not, calls are refused. */
  get takesCalls(): boolean {
    return this.#health.takesCalls;
  }

  /** Number of wanted workers that run or will be started again: those of latched slots do not count. */
  get runningWorkers(): number {
    const running = this.#slots.kept.filter(({ state }) => state.name !== 'latched');
    return Math.min(this.wantedWorkers, running.length); // with 0 wanted, some may still be ending their calls
  }

  get readyWorkers(): number {
    return this.#slots.ready.length;
  }

  /** The slots beyond the wanted ones: once they are ready, their workers stand by. */
  get standbys(): readonly Slot[] {
    return this.#slots.standbys;
  }

  /** On the monotonic clock; null until a worker was ready. */
  get firstReadyAtMs(): number | null {
    return this.#health.firstReadyAtMs;
  }

  get health(): Health {
    return this.#health.health;
  }

  /** Why calls are refused: every slot is latched or failing. Null: they are not. */
  get standstill(): Standstill | null {
    return this.#health.standstill;
  }

  /** Says what is wrong while the model wants workers and none can start, and what to do, without the app's words; else null. */
  get problem(): string | null {
    return this.#health.problem;
  }

  /** When a call last ended in a worker, or a worker was ready again, on the monotonic clock; at first, the start of the model. */
  get idleSinceMs(): number {
    return this.#idleSinceMs;
  }

  noteIdle(): void {
    this.#idleSinceMs = performance.now();
    this.#memory?.nudge();
  }

  /** Calls that the workers hold, including those whose clients have left. */
  get heldCalls(): number {
    return this.#slots.workers.reduce((sum, worker) => sum + worker.load, 0);
  }

  /** Looks up when the oldest running call began, on the monotonic clock; null if none runs. */
  findOldestBegan(): number | null {
    const begun = this.#slots.workers
      .map((worker) => worker.lookUpCallBegan())
      .filter((atMs) => atMs !== null);
    return begun.length === 0 ? null : Math.min(...begun);
  }

  /** Resolves once a worker is ready, or when `givenUp` does. @throws SERVE_NOT_READY, SERVE_SHUTTING_DOWN */
  whenReady(givenUp: Promise<unknown>): Promise<void> {
    return this.#health.whenReady(givenUp);
  }

  /**
   * Resolves with the routes once a worker has loaded the app, or with null when `givenUp` settles first; callers continue
   * in the order in which they came. For calls that were admitted: a drain lets them wait. A model that has no worker since
   * none was needed starts one; `untilMs`: when the call will be given up.
   * @throws SERVE_NOT_READY, SERVE_SHUTTING_DOWN
   */
  whenLoaded(givenUp: Promise<unknown>, untilMs: number): Promise<Routes | null> {
    return this.#scaler.counting(untilMs, () => this.#health.whenLoaded(givenUp));
  }

  /** Resolves with the error of the first slot that is latched or failing; with null when `givenUp` settles first. */
  whenOneFails(givenUp: Promise<unknown>): Promise<ServeError | null> {
    return this.#health.whenOneFails(givenUp);
  }

  /** As `whenOneFails`; also with the error of the first worker that runs out of memory while it starts. */
  whenFirstFailed(givenUp: Promise<unknown>): Promise<ServeError | null> {
    return this.#health.whenFirstFailed(givenUp);
  }

  /** Lets its latched and failing slots start again at once, as if they had never failed. No effect once the server drains. */
  startAgain(): void {
    this.#changes.startAgain();
  }

  /** Starts a worker in each of these placements, which `Devices` gave. */
  start(placements: readonly Placement[]): void {
    this.#changes.start(placements);
  }

  /** The bounds that its options say; null if its number of workers is fixed. @throws SERVE_CONFIG */
  findOwnBounds(): WorkerBounds | null {
    return this.#scaler.findOwnBounds();
  }

  /** The bounds within which it scales itself; null if its number of workers is fixed. */
  get bounds(): WorkerBounds | null {
    return this.#scaler.bounds;
  }

  /** The rules by which its number of workers follows its calls; null if it is fixed. */
  get scaling(): ModelScaling | null {
    const { rules, changes, startMs } = this.#scaler;
    return rules === null ? null : { rules, changes, startMs };
  }

  /** The most calls that were queued or running at once in the last minute; measured if metrics are on, or it scales itself. */
  get mostCalls(): number {
    return this.#scaler.mostCalls;
  }

  /** As `whenReady`; a model that has no worker since none was needed starts one. */
  warmUp(givenUp: Promise<unknown>): Promise<void> {
    return this.#scaler.counting(Infinity, () => this.#health.whenReady(givenUp));
  }

  /** As `warmUp`, and resolves as `scale` does. @throws SERVE_SHUTTING_DOWN */
  load(): Promise<Outcome> {
    return this.#scaler.counting(Infinity, () => this.#health.whenSettled());
  }

  /**
   * Adds or retires slots until their number is within the bounds; latched slots do not count, and try again, as failing ones do. A worker that
   * is retired first ends the calls that it holds, as far as `limits` allow; no call is lost or run twice. With none, new
   * calls are refused from now on, and accepted calls end before the workers stop.
   *
   * Resolves once every slot has a ready worker or is latched or failing, and all other workers are gone. If another `scale` overtakes
   * this one, it resolves with the numbers of that one.
   * @throws SERVE_CONFIG if there are not enough devices, and SERVE_SHUTTING_DOWN
   */
  async scale(bounds: WorkerBounds, limits: RetireLimits): Promise<Outcome> {
    return this.#changes.scale(bounds, limits);
  }

  /**
   * Replaces the spec as a whole. If only options differ that the front enforces (queue, timeouts, batches), they apply at
   * once. Otherwise the workers are replaced one by one: on the CPU the next one is ready before the present one stops, on
   * a GPU the present one stops first. No call is lost. Options for devices apply to slots that are added later.
   *
   * If a new worker dies before it is ready, the remaining ones are not replaced; if no new worker was ready by then, the
   * previous spec stays in force. Resolves when all replaced workers are gone, with the error of that worker.
   * @throws SERVE_CONFIG if the app's own options do not fit, and SERVE_SHUTTING_DOWN
   */
  async replace(spec: ModelSpec, limits: RetireLimits): Promise<Outcome> {
    return this.#changes.replace(spec, limits);
  }

  /**
   * As `replace`, but replaces the workers even if the spec is the same: its files may have changed. If no worker is ready,
   * all start again at once.
   */
  async renew(spec: ModelSpec, limits: RetireLimits): Promise<Outcome> {
    return this.#changes.renew(spec, limits);
  }

  /**
   * Replaces the worker of one slot: on the CPU the next one is ready before the present one stops, on a GPU, and if the
   * present one is not ready, the present one ends first. It finishes the calls that it has begun, as far as `limits` allow.
   * A slot that waits after a death, or has given up, starts at once. Resolves with the error of a next one that cannot start.
   * @throws SERVE_NOT_FOUND, SERVE_SHUTTING_DOWN
   */
  async restartWorker(index: number, limits: RetireLimits): Promise<Outcome> {
    return this.#changes.restartWorker(index, limits);
  }

  /**
   * The app has changed: every slot starts again, with the code that is on disk now, and the description of the old code
   * is dropped. Calls wait meanwhile, so that none is answered by old code. No effect once the server drains.
   */
  replaceAtOnce(spec: ModelSpec, limits: RetireLimits): void {
    this.#changes.replaceAtOnce(spec, limits);
  }

  /** Reports `draining` as health from now on; calls are still taken. */
  announceDrain(): void {
    this.#health.announceDrain();
  }

  /** Refuses new calls from now on; calls taken before go on, conversations until their app waits for the client. */
  refuseCalls(): void {
    this.#health.refuseCalls();
    this.#applier.applyQueueLimits();
    for (const worker of this.#slots.workers) worker.endConversations(shuttingDown());
  }

  /** Fails every call that has not begun, and refuses every new one, with this error from now on, for good. */
  rejectCalls(error: ServeError): void {
    this.#health.rejectCalls(error);
    this.dispatcher.failNotBegun(error);
  }

  /** Whether its app may have a `shutdown` to run when a worker stops. */
  get hasShutdown(): boolean {
    const { inForce, newest } = this.#generations;
    return inForce.hasShutdown || newest.hasShutdown;
  }

  /** Whether no call is waiting, arriving or running. */
  get quiet(): boolean {
    const { dispatcher } = this;
    return dispatcher.queued + dispatcher.arriving + dispatcher.inFlight === 0;
  }

  /** Number of worker processes, in any state. */
  get workerCount(): number {
    return this.#slots.workers.length;
  }

  /** Stops every worker: a message, SIGTERM after `graceMs`, then SIGKILL. */
  close(graceMs: number): void {
    this.#end();
    if (this.slots.length === 0) this.#listener.onClosed();
    for (const slot of this.slots) slot.close(graceMs);
  }

  /** SIGKILL to every worker's group, synchronously. */
  killAll(): void {
    this.#end();
    for (const slot of this.slots) slot.kill();
  }

  #end(): void {
    this.#isClosed = true;
    this.#scaler.close();
    this.#health.close();
  }

  #parts(resources: ServerResources): ModelParts {
    const label = (): string => resources.labelOf(this.spec);
    return {
      resources,
      listener: this.#listener,
      generations: this.#generations,
      dispatcher: this.dispatcher,
      slots: this.#slots,
      health: this.#health,
      log: new ModelLog(resources.log, label),
      slowStarts: new SlowStarts(
        resources.startReporter,
        () => startingWorkers(this.slots),
        () => this.options.initTimeout,
        label,
      ),
      runningWorkers: () => this.runningWorkers,
      isReplacing: () => this.#changes.isReplacing,
      isClosed: () => this.#isClosed,
      isQuiet: () => this.quiet,
      idleSinceMs: () => this.#idleSinceMs,
      noteIdle: () => this.noteIdle(),
    };
  }

  /** The model, as the feed of its jobs sees it. */
  #fed(resources: ServerResources): FedModel {
    const { name, version } = this.spec;
    return {
      name,
      version,
      isDefault: () => resources.isDefault(this.spec),
      routes: () => (this.#health.takesJobs ? this.#generations.inForce.batchSizes : NO_ROUTES),
      isLoaded: () => this.routes !== null,
      pump: () => {
        this.dispatcher.pump();
        if (this.dispatcher.hasUnroutedJobs) this.#scaler.ask();
      },
    };
  }

  #supply(): Supply {
    return {
      readyWorkers: () => this.#slots.callable,
      holders: () => this.#slots.holders,
      refusal: () => this.#health.refusal,
      noWorkerError: () => this.#health.noWorkerError,
      readyInMs: () => this.#scaler.startsInMs() ?? this.#health.predictReadyMs(),
      startsInMs: () => this.#scaler.startsInMs(),
    };
  }
}
