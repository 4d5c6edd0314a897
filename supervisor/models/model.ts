/**
 * One model: its queue, its slots, its app's word, its health.
 * Before: the HTTP dialects bring jobs; the registry says how many workers it wants. After: slots run workers; news
 * comes back through the listeners below.
 */
import { shuttingDown, type ServeError } from '../../protocol/errors.js';
import { Dispatcher, type Supply } from '../dispatch/dispatcher.js';
import type { ModelOptions } from '../options/resolve.js';
import type { Placement } from '../machine/placement.js';
import type { Slot } from '../slots/slot.js';
import type { RetireLimits } from '../processes/worker-listener.js';
import type { Routes } from './app-description.js';
import { dispatchLimits } from './dispatch-rules.js';
import { Generations } from './generations.js';
import { ModelChanges } from './model-changes.js';
import type { ModelListener, ServerResources } from './model-resources.js';
import { ModelLog } from './model-log.js';
import { ModelHealth, type Settled } from './model-health.js';
import type { Health } from './slot-summary.js';
import { OptionsApplier } from './options-applier.js';
import { SlotSet } from './slot-set.js';
import { SlowStarts, startingWorkers } from './slow-starts.js';
import type { ModelSpec } from './model-spec.js';
import { SlotFactory } from './slot-factory.js';

export class Model {
  readonly dispatcher: Dispatcher;
  readonly #generations: Generations;
  readonly #slots: SlotSet;
  readonly #listener: ModelListener;
  readonly #health: ModelHealth;
  readonly #rules: OptionsApplier;
  readonly #changes: ModelChanges;
  #isClosed = false;
  #idleSinceMs = performance.now();

  /** It has no slots yet, and refuses calls. */
  constructor(spec: ModelSpec, resources: ServerResources, listener: ModelListener) {
    this.#listener = listener;
    this.#generations = new Generations(spec);
    this.dispatcher = new Dispatcher(
      this.#supply(),
      dispatchLimits(spec.resolved.options, false),
      resources.budget,
      resources.sendAhead,
    );
    this.#slots = new SlotSet(
      resources.devices,
      (worker) => this.#generations.mayServe(worker),
      (index, placement) => news.newSlot(index, placement),
    );
    this.#health = new ModelHealth(this.#slots, () => this.routes);
    const label = (): string => resources.labelOf(spec);
    const log = new ModelLog(resources.log, label);
    const startNews = new SlowStarts(
      resources.startReporter,
      () => startingWorkers(this.slots),
      () => this.options.initTimeout,
      label,
    );
    const parts = {
      generations: this.#generations,
      slots: this.#slots,
      health: this.#health,
      dispatcher: this.dispatcher,
      log,
    };
    this.#rules = new OptionsApplier({ ...parts, maxOutputBytes: resources.maxOutputBytes });
    const news = new SlotFactory({
      ...parts,
      resources,
      listener,
      rules: this.#rules,
      startNews,
      isClosed: () => this.#isClosed,
      noteIdle: () => this.noteIdle(),
    });
    this.#changes = new ModelChanges({
      ...parts,
      devices: resources.devices,
      isQuiet: () => this.quiet,
      limitQueue: () => this.#rules.applyQueueLimits(),
      limitAll: () => this.#rules.applyLimits(),
    });
  }

  /** What it is made from; while workers are replaced one by one, what the next ones are made from. */
  get spec(): ModelSpec {
    return this.#generations.newest.spec;
  }

  /** Options in force: the operator's over the app's. */
  get options(): ModelOptions {
    return this.#generations.inForce.options;
  }

  /** The app's routes; null until a worker has loaded it. */
  get routes(): Routes | null {
    return this.#generations.inForce.routes;
  }

  /** A sample input as JSON, to show a person; empty if the app has none. */
  get example(): string {
    return this.#generations.inForce.example;
  }

  /** In the order of their indices, those that are being given up included. */
  get slots(): readonly Slot[] {
    return this.#slots.all;
  }

  /** How many workers it shall have; 0: it refuses calls. */
  get wantedWorkers(): number {
    return this.#health.wanted;
  }

  /** How many of them run or will be started again: those that have given up do not count. */
  get runningWorkers(): number {
    const running = this.#slots.kept.filter(({ state }) => state.name !== 'latched');
    return Math.min(this.wantedWorkers, running.length); // with 0 wanted, some may still be there to end their calls
  }

  get readyWorkers(): number {
    return this.#slots.ready.length;
  }

  /** On the monotonic clock; null until a worker was ready. */
  get firstReadyAtMs(): number | null {
    return this.#health.firstReadyAtMs;
  }

  get health(): Health {
    return this.#health.health;
  }

  /** Every slot has given up. */
  get isLatched(): boolean {
    return this.#health.isLatched;
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
    return this.#slots.workers.reduce((sum, worker) => sum + worker.load, 0);
  }

  /** When the oldest of the calls that run now began; null if none runs. */
  findOldestBegan(): number | null {
    const begun = this.#slots.workers.map((worker) => worker.lookUpCallBegan()).filter((atMs) => atMs !== null);
    return begun.length === 0 ? null : Math.min(...begun);
  }

  /** Resolves once a worker is ready, or when `givenUp` does. @throws SERVE_NOT_READY, SERVE_SHUTTING_DOWN */
  whenReady(givenUp: Promise<unknown>): Promise<void> {
    return this.#health.whenReady(givenUp);
  }

  /**
   * The routes, once a worker has loaded the app; null when `givenUp` settles first. Those who wait go on in the order
   * they came. For calls that have a place: a drain lets them wait. @throws SERVE_NOT_READY, SERVE_SHUTTING_DOWN
   */
  whenLoaded(givenUp: Promise<unknown>): Promise<Routes | null> {
    return this.#health.whenLoaded(givenUp);
  }

  /** Why a slot has given up, once one has; null when `givenUp` settles first. */
  whenOneGaveUp(givenUp: Promise<unknown>): Promise<ServeError | null> {
    return this.#health.whenOneGaveUp(givenUp);
  }

  /** Starts a worker in each of these places, which `Devices` gave for it. */
  start(placements: readonly Placement[]): void {
    this.#health.want(this.#slots.kept.length + placements.length);
    this.#slots.add(placements);
  }

  /**
   * Adds slots, or gives slots up, until there are `count`; slots that had given up try again. A worker that goes
   * ends the calls that it holds first, as far as `limits` allow; none is lost or run twice. With 0, calls are refused
   * from now on, and those that were taken are ended before the workers go.
   *
   * Resolves once every slot has a ready worker or has given up, and the others are gone; if another `scale` overtakes
   * this one, with the numbers of that one.
   * @throws SERVE_CONFIG if the devices are not to be had, and SERVE_SHUTTING_DOWN
   */
  async scale(count: number, limits: RetireLimits): Promise<Settled> {
    return this.#changes.scale(count, limits);
  }

  /**
   * Replaces the spec as a whole. What differs only in options that the front enforces (queue, timeouts, batches)
   * holds at once; else the workers are replaced one by one: on the CPU the next one is ready before the present one
   * goes, on a GPU the present one goes first. No call is lost. Devices that are wished for count for slots to come.
   *
   * If a worker dies before it is ready, the others stay as they are; if none of the new ones was ready until then, the
   * spec before stays in force. Resolves when all is done and the workers before are gone, with that error.
   * @throws SERVE_CONFIG if the app's own options do not fit, and SERVE_SHUTTING_DOWN
   */
  async replace(spec: ModelSpec, limits: RetireLimits): Promise<Settled> {
    return this.#changes.replace(spec, limits);
  }

  /**
   * The app has changed: every slot begins anew, with what is on disk now, and nothing that its code said holds any
   * more. Calls are held meanwhile, so that none is answered by what was before. Of no effect once the server drains.
   */
  replaceAtOnce(spec: ModelSpec, limits: RetireLimits): void {
    this.#changes.replaceAtOnce(spec, limits);
  }

  /** Health says draining from now on; calls are still taken. */
  announceDrain(): void {
    this.#health.announceDrain();
  }

  /** New calls are refused from now on; those taken go on, conversations until their app waits for the client. */
  refuseCalls(): void {
    this.#health.refuseCalls();
    this.#rules.applyQueueLimits();
    for (const worker of this.#slots.workers) worker.endConversations(shuttingDown());
  }

  /** Every call that has not begun, and every new one, is refused with this error from now on, for good. */
  rejectCalls(error: ServeError): void {
    this.#health.rejectCalls(error);
    this.dispatcher.failNotBegun(error);
  }

  /** Nothing is waiting, arriving or running. */
  get quiet(): boolean {
    const { dispatcher } = this;
    return dispatcher.queued + dispatcher.arriving + dispatcher.inFlight === 0;
  }

  /** Worker processes that are there, in whatever state. */
  get workerCount(): number {
    return this.#slots.workers.length;
  }

  /** Stops every worker: a message, SIGTERM after `graceMs`, then SIGKILL. */
  close(graceMs: number): void {
    this.#isClosed = true;
    if (this.slots.length === 0) this.#listener.onClosed();
    for (const slot of this.slots) slot.close(graceMs);
  }

  /** SIGKILL to every worker's group, synchronously. */
  killAll(): void {
    this.#isClosed = true;
    for (const slot of this.slots) slot.kill();
  }

  #supply(): Supply {
    return {
      readyWorkers: () => this.#slots.ready,
      refusal: () => this.#health.refusal,
      noWorkerError: () => this.#health.noWorkerError,
      readyInMs: () => this.#health.predictReadyMs(),
    };
  }
}
