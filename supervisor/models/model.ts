/**
 * One model: its queue, its workers, the description of its app, and the changes of all that.
 * Before: the HTTP dialects submit calls; the registry sets the number of workers. After: slots run workers, whose events
 * `worker-events.ts` handles.
 */
import { ServeError, shuttingDown } from '../../protocol/errors.js';
import type { LoadedInfo } from '../../protocol/wire/messages.js';
import { Dispatcher } from '../dispatch/dispatcher.js';
import type { FedModel } from '../jobs/model-feed.js';
import type { ModelOptions } from '../options/resolve.js';
import type { Placement } from '../machine/placement.js';
import type { RetireLimits } from '../processes/worker-listener.js';
import { startError } from '../slots/restart-policy.js';
import type { Slot } from '../slots/slot.js';
import { applyLimits, applyQueueLimits, dispatchLimits } from './apply-options.js';
import type { WorkerBounds } from './bounds.js';
import { ModelInBudget } from './budgeted-model.js';
import { Crew } from './crew.js';
import type { Demand } from './demand.js';
import { Generations, needsNewWorkers, type Routes } from './generations.js';
import { ModelHealth } from './model-health.js';
import { ModelLog } from './model-log.js';
import type { ModelCore, ModelEvent, ServerResources } from './model-resources.js';
import type { ModelSpec } from './model-spec.js';
import { outcomeOf, type Outcome } from './outcome.js';
import { Sizing } from './sizing.js';
import { hasStarted, isSettled } from './slot-summary.js';
import { WorkerEvents } from './worker-events.js';

const NO_ROUTES: ReadonlyMap<string, number> = new Map();

/** A model as calls, pages and metrics see it: only its server changes it. */
export type Model = Pick<
  ManagedModel,
  | 'spec'
  | 'options'
  | 'routes'
  | 'info'
  | 'dispatcher'
  | 'crew'
  | 'health'
  | 'sizing'
  | 'whenLoaded'
  | 'warmUp'
  | 'load'
>;

export class ManagedModel {
  readonly dispatcher: Dispatcher;
  // Only the model changes its parts: others get them without what changes them.
  readonly crew: Readonly<Omit<Crew, 'want' | 'add' | 'retire' | 'hurry' | 'remove' | 'refresh'>>;
  readonly health: Readonly<
    Omit<
      ModelHealth,
      'want' | 'forgetServing' | 'refuseCalls' | 'rejectCalls' | 'onReady' | 'checkStandstill'
    >
  >;
  readonly sizing: Readonly<
    Pick<Sizing, 'bounds' | 'rules' | 'changes' | 'changeCounts' | 'findOwnBounds'>
  > & {
    readonly demand: Pick<Demand, 'mostCalls' | 'startMs'>;
  };
  readonly #parts: ModelCore;
  readonly #sizing: Sizing;
  readonly #events: WorkerEvents;

  /** Has no slots at first, and refuses calls until `start` or `scale`. */
  constructor(spec: ModelSpec, resources: ServerResources, tell: (event: ModelEvent) => void) {
    const generations = new Generations(spec);
    const crew = new Crew(
      resources.devices,
      (worker) => generations.mayServe(worker),
      (index, placement) => this.#events.newSlot(index, placement),
    );
    const health = new ModelHealth(crew, () => generations.inForce.routes, resources.watch);
    this.dispatcher = new Dispatcher(
      { crew, health, startsInMs: () => this.#sizing.startsInMs() },
      dispatchLimits(spec.resolved.options, false),
      resources.budget,
      resources.sendAhead,
      resources.jobs.openFeed(this.#fed(spec, resources)),
    );
    this.#parts = {
      resources,
      generations,
      dispatcher: this.dispatcher,
      crew,
      health,
      log: new ModelLog(resources.log, () => resources.labelOf(this.spec)),
      tell(event) {
        if (event.type === 'closed') resources.memory?.ledger.remove(inBudget);
        tell(event);
      },
    };
    this.#sizing = new Sizing(this.#parts);
    this.#events = new WorkerEvents(this.#parts, this.#sizing);
    const inBudget = new ModelInBudget(this.#parts, this.#sizing);
    resources.memory?.ledger.models.add(inBudget);
    this.crew = crew;
    this.health = health;
    this.sizing = this.#sizing;
  }

  /** The spec that the next worker is started with. */
  get spec(): ModelSpec {
    return this.#parts.generations.newest.spec;
  }

  /** Options in force: the operator's over the app's. */
  get options(): ModelOptions {
    return this.#parts.generations.inForce.options;
  }

  /** The routes of `info` by path; null until a worker has loaded the app. */
  get routes(): Routes | null {
    return this.#parts.generations.inForce.routes;
  }

  /** The app's description of itself; null until a worker has loaded it. */
  get info(): LoadedInfo | null {
    return this.#parts.generations.inForce.info;
  }

  /** Whether its app may have a `shutdown` to run when a worker stops. */
  get hasShutdown(): boolean {
    const { inForce, newest } = this.#parts.generations;
    return inForce.hasShutdown || newest.hasShutdown;
  }

  /**
   * Resolves with the routes once a worker has loaded the app, or with null when `givenUp` settles first; callers continue
   * in the order in which they came. For calls that were admitted: a drain lets them wait. A model that has no worker since
   * none was needed starts one; `untilMs`: when the call will be given up.
   * @throws SERVE_NOT_READY, SERVE_SHUTTING_DOWN
   */
  whenLoaded(givenUp: Promise<unknown>, untilMs: number): Promise<Routes | null> {
    return this.#sizing.demand.counting(untilMs, () => this.#parts.health.whenLoaded(givenUp));
  }

  /**
   * Resolves once a worker is ready, or when `givenUp` does; a model that has no worker since none was needed starts one.
   * Its idle time begins anew. @throws SERVE_NOT_READY, SERVE_SHUTTING_DOWN
   */
  async warmUp(givenUp: Promise<unknown>): Promise<void> {
    await this.#sizing.demand.counting(Infinity, () => this.#parts.health.whenReady(givenUp));
    this.#events.noteIdle();
  }

  /** Waits for a worker as `warmUp` does, and resolves as `scale` does. @throws SERVE_SHUTTING_DOWN */
  load(): Promise<Outcome> {
    return this.#sizing.demand.counting(Infinity, () => this.#parts.health.whenSettled());
  }

  /** Starts a worker in each of these placements, which `Devices` gave. */
  start(placements: readonly Placement[]): void {
    this.#sizing.start(placements);
  }

  /** See `Sizing.resize`. @throws SERVE_CONFIG, SERVE_SHUTTING_DOWN */
  async scale(bounds: WorkerBounds, limits: RetireLimits): Promise<Outcome> {
    return this.#sizing.resize(bounds, limits);
  }

  /** Lets its latched and failing slots start again at once, as if they had never failed. No effect once the server drains. */
  startAgain(): void {
    const { crew, health } = this.#parts;
    if (!health.isDraining) for (const slot of crew.kept) slot.startAgain();
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
    const outcome = await this.#replace(spec, limits);
    this.#sizing.followOptions(limits);
    return outcome;
  }

  async #replace(spec: ModelSpec, limits: RetireLimits): Promise<Outcome> {
    const { crew, generations, health } = this.#parts;
    if (health.isDraining) throw shuttingDown();
    if (generations.isUntried || needsNewWorkers(generations.newest.spec, spec))
      return this.renew(spec, limits);
    generations.change(spec, crew.workers);
    applyLimits(this.#parts);
    this.#sizing.followOptions(limits);
    return health.whenSettled();
  }

  /**
   * As `replace`, but replaces the workers even if the spec is the same: its files may have changed. If no worker is ready,
   * all start again at once.
   */
  async renew(spec: ModelSpec, limits: RetireLimits): Promise<Outcome> {
    const { crew, generations, health, log } = this.#parts;
    if (health.isDraining) throw shuttingDown();
    if (crew.ready.length === 0) {
      this.replaceAtOnce(spec, limits); // no worker serves meanwhile
      return health.whenSettled();
    }
    generations.begin(spec);
    generations.replacements += 1;
    const error = await this.#replaceOneByOne(limits);
    generations.replacements -= 1;
    if (error !== null) log.replacingFailed(error);
    const outcome = await health.whenSettled();
    return { ...outcome, error: error ?? outcome.error };
  }

  /**
   * Replaces workers by workers of the newest generation, one slot after the other, so that no call is lost and the others
   * serve meanwhile. Stops at the first worker that dies before it is ready: if none of the generation was ready until then,
   * the spec is taken back, else the remaining slots keep their workers. Resolves with the reason why that worker could not
   * start; null if all did, or if another change overtook this one.
   */
  async #replaceOneByOne(limits: RetireLimits): Promise<ServeError | null> {
    const { crew, generations, health } = this.#parts;
    const app = generations.newest;
    const isOvertaken = (): boolean => generations.newest !== app || health.isDraining;
    const isNew = (slot: Slot): boolean => generations.of(slot.worker) === app;
    for (const slot of crew.kept) {
      if (isOvertaken()) return null;
      if (!slot.isKept || isNew(slot)) continue;
      slot.renew(limits);
      await health.changes.wait(() => isOvertaken() || !slot.isKept || hasStarted(slot) || null);
      if (isOvertaken()) return null;
      if (!slot.isKept || (isNew(slot) && slot.failure === null)) continue;
      const error = slot.lastDeath === null ? null : startError(slot.lastDeath);
      if (!generations.isUntried) return error;
      generations.newest = generations.inForce;
      for (const other of crew.kept)
        if (generations.of(other.worker) !== generations.inForce) other.replace(limits);
      return error;
    }
    if (!isOvertaken()) generations.inForce = app; // although no worker of it was ready: no slot has an older one
    return null;
  }

  /**
   * Replaces the worker of one slot: on the CPU the next one is ready before the present one stops, on a GPU, and if the
   * present one is not ready, the present one ends first. It finishes the calls that it has begun, as far as `limits` allow.
   * A slot that waits after a death, or has given up, starts at once. Resolves with the error of a next one that cannot start.
   * @throws SERVE_NOT_FOUND, SERVE_SHUTTING_DOWN
   */
  async restartWorker(index: number, limits: RetireLimits): Promise<Outcome> {
    const { crew, health, log } = this.#parts;
    if (health.isDraining) throw shuttingDown();
    const slot = crew.kept.find((one) => one.index === index);
    if (slot === undefined) throw noWorker(index);
    log.worker(index, 'is restarted on request');
    const before = slot.worker;
    slot.renew(limits);
    await health.changes.wait(() => !slot.isKept || isSettled(slot) || health.isDraining || null);
    if (health.isDraining) throw shuttingDown();
    if (!slot.isKept) throw noWorker(index);
    if (slot.worker !== before && slot.worker?.state === 'ready') return outcomeOf(1, 1, null);
    return outcomeOf(1, 0, slot.failure ?? (slot.lastDeath === null ? null : startError(slot.lastDeath)));
  }

  /**
   * The app has changed: every slot starts again, with the code that is on disk now, and the description of the old code
   * is dropped. Calls wait meanwhile, so that none is answered by old code. No effect once the server drains.
   */
  replaceAtOnce(spec: ModelSpec, limits: RetireLimits): void {
    const { crew, generations, health, log } = this.#parts;
    if (health.isDraining) return;
    health.forgetServing();
    log.forgetErrors();
    generations.beginAtOnce(spec);
    applyQueueLimits(this.#parts);
    for (const slot of crew.standbys) slot.retire(limits); // they come again once the new code is ready
    for (const slot of crew.all) slot.replace(limits);
    if (health.takesCalls && crew.kept.length === 0) this.#sizing.grow(1, { rule: 'change' });
  }

  /** Refuses new calls from now on; calls taken before go on, conversations until their app waits for the client. */
  refuseCalls(): void {
    const { crew, health } = this.#parts;
    health.refuseCalls();
    applyQueueLimits(this.#parts);
    for (const worker of crew.workers) worker.endConversations(shuttingDown());
  }

  /** Fails every call that has not begun, and refuses every new one, with this error from now on, for good. */
  rejectCalls(error: ServeError): void {
    this.#parts.health.rejectCalls(error);
    this.dispatcher.failNotBegun(error);
  }

  /** Begins jobs that may be due for it now, or asks for a worker. */
  takeJobs(): void {
    this.dispatcher.pump();
    if (this.dispatcher.feed.needsApp) this.#sizing.ask();
  }

  /** Stops every worker: a message, SIGTERM after `graceMs`, then SIGKILL. */
  close(graceMs: number): void {
    this.#end();
    if (this.crew.all.length === 0) this.#parts.tell({ type: 'closed' });
    for (const slot of this.crew.all) slot.close(graceMs);
  }

  /** SIGKILL to every worker's group, synchronously. */
  killAll(): void {
    this.#end();
    for (const slot of this.crew.all) slot.kill();
  }

  #end(): void {
    const { crew, health } = this.#parts;
    crew.isClosed = true;
    this.#sizing.close();
    health.changes.wake();
  }

  /** The model, as the feed of its jobs sees it. */
  #fed(spec: ModelSpec, resources: ServerResources): FedModel {
    const { name, version } = spec;
    return {
      name,
      target: () => ({
        model: name,
        version,
        isDefault: resources.isDefault(this.spec),
        routes: this.#parts.health.takesJobs ? this.#parts.generations.inForce.batchSizes : NO_ROUTES,
      }),
      isLoaded: () => this.routes !== null,
      pump: () => this.takeJobs(),
    };
  }
}

export function noWorker(index: number): ServeError {
  return new ServeError('SERVE_NOT_FOUND', `The model has no worker ${index}.`);
}
