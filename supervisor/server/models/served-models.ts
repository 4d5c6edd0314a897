/**
 * The models of one server from their first worker to their last: makes them, follows the files of their apps, and knows
 * what they have come to.
 * Before: the server, or a program at run time, says which. After: the registry finds them; `start-up.ts` says what follows
 * when one of them is ready or gives up.
 */
import type { ServeError } from '../../../protocol/errors.js';
import type { ServerResources } from '../../models/model-resources.js';
import { Model } from '../../models/model.js';
import {
  Models,
  type Accepted,
  type ModelRef,
  type Outcome,
  type WorkerBounds,
} from '../../models/models.js';
import type { Log } from '../../observe/log.js';
import { labelOf, type FullModelRef } from '../../options/model-name.js';
import type { ServerOptions } from '../../options/resolve.js';
import type { WorkerDeath } from '../../processes/worker-death.js';
import type { AppMetric, RetireLimits } from '../../processes/worker-listener.js';
import type { Slot } from '../../slots/slot.js';
import { APP_SOURCES } from '../../runtimes/index.js';
import { releasedOnFailure, type Release } from '../../store/stored-model.js';
import { AppFiles, changeText } from '../../watch/app-files.js';
import { deferred, type Deferred } from '../../machine/deferred.js';
import { retireLimits } from '../../processes/worker-stop.js';
import type { FirstModel, ModelPlan } from '../../plan/plan-models.js';
import type { ModelPresence } from '../../status/readiness.js';
import { clashText, routeClashes } from './route-clashes.js';
import { StartUp } from './start-up.js';

export interface ServedModelsListener {
  /** A model has its first worker. */
  onFirstReady(model: Model): void;
  /** No model can serve: the server ends. */
  onEnd(error: ServeError): void;
}

/** Is told what the workers of all models do. */
export interface WorkerObserver {
  /** A worker is ready, `startMs` after its process was started. */
  ready(model: Model, worker: number, startMs: number): void;
  /** A worker died; what follows is the slot's state. */
  died(model: Model, slot: Slot, death: WorkerDeath): void;
  /** A worker tells what its app has measured. */
  measured(model: Model, worker: number, metrics: readonly AppMetric[]): void;
}

/** A model's app is watched and its workers are watched over until it is closed. */
interface Kept {
  readonly closed: Deferred<void>;
  /** Give back what its workers are loaded from. */
  readonly lent: Set<Release>;
  files: readonly AppFiles[];
}

export class ServedModels {
  readonly registry: Models;
  readonly startUp: StartUp<Model>;
  readonly #options: ServerOptions;
  readonly #log: Log;
  readonly #resources: ServerResources;
  readonly #listener: ServedModelsListener;
  readonly #observers: readonly WorkerObserver[];
  readonly #kept = new Map<Model, Kept>();
  readonly #isMmsMode: boolean;
  #isNamed: boolean;

  constructor(
    options: ServerOptions,
    isMmsMode: boolean,
    resources: Omit<ServerResources, 'labelOf'>,
    listener: ServedModelsListener,
    observers: readonly WorkerObserver[],
  ) {
    this.#options = options;
    this.registry = new Models(Math.max(options.unregisterTimeout, LEAST_LEAVE_MS));
    this.#isMmsMode = isMmsMode;
    this.#isNamed = isMmsMode; // where models come and go, whose a line is never changes
    this.#log = resources.log;
    this.#listener = listener;
    this.#observers = observers;
    this.#resources = { ...resources, labelOf: (ref) => this.labelOf(ref) };
    this.startUp = new StartUp({ ...options, isMmsMode }, resources.log, {
      onEnd: (error) => listener.onEnd(error),
    });
  }

  /** Those that are being unregistered included. */
  get all(): readonly Model[] {
    return [...this.#kept.keys()];
  }

  /** Resolves once every worker of those that there are now is gone. */
  async untilClosed(): Promise<void> {
    await Promise.all([...this.#kept.values()].map(({ closed }) => closed.promise));
  }

  add(plans: readonly ModelPlan[]): void {
    for (const plan of plans) this.registry.addFirst(this.#make(plan), plan.isDefault);
    this.#nameIfSeveral();
  }

  /** Starts the workers of those that were added. With `watch`, their files are watched before they are loaded. */
  async start(plans: readonly FirstModel[]): Promise<void> {
    const models = plans.map(({ spec }) => this.registry.find(spec));
    this.startUp.begin(models);
    await Promise.all(models.map((model) => this.#watch(model))); // no change may slip between
    models.forEach((model, i) => model.start((plans[i] as FirstModel).placements));
  }

  /** @throws SERVE_MODEL_CONFLICT, SERVE_SHUTTING_DOWN */
  async register(plan: ModelPlan): Promise<Model> {
    const make = (): Model => this.#make(plan);
    const model = await releasedOnFailure(plan.release, () => this.registry.register(plan.spec, make));
    this.#warnOfProgram(plan);
    this.#nameIfSeveral();
    await this.#watch(model);
    return model;
  }

  /** As `Model.replace`; with `watch`, the files of the new app are watched before it is loaded. */
  async replace(model: Model, plan: ModelPlan, limits: RetireLimits): Promise<Outcome> {
    const { spec, release } = plan;
    this.#warnOfProgram(plan);
    if (this.#options.watch) {
      this.#unwatch(model);
      await this.#watch(model, spec);
    }
    const { lent } = this.#kept.get(model) as Kept;
    const before = spec.app === model.spec.app ? [] : [...lent]; // it may be the same file, under other options
    lent.add(release);
    const settled = await model.replace(spec, limits);
    if (settled.error === null) giveBack(lent, before); // else workers may be loaded from what was before
    return settled;
  }

  /** @throws SERVE_CONFIG, SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND */
  scale(ref: ModelRef, bounds: WorkerBounds, limits: RetireLimits): Accepted {
    const scaled = this.registry.scale(ref, bounds, limits);
    const model = this.registry.find(scaled.accepted);
    if (model.wantedWorkers === 0) this.startUp.withdraw(model);
    return scaled;
  }

  presenceOf(model: Model): ModelPresence {
    const { health, wantedWorkers, spec } = model;
    return { label: labelOf(spec), health, wantedWorkers, isComingUp: this.startUp.isComingUp(model) };
  }

  /** No file is watched any more. */
  unwatch(): void {
    for (const { files } of this.#kept.values()) for (const watched of files) watched.close();
  }

  /** Nothing is taken or waits any more. */
  close(): void {
    this.registry.close();
    this.unwatch();
    for (const { dispatcher } of this.all) dispatcher.close();
  }

  /** SIGKILL to every worker, synchronously. */
  killAll(): void {
    for (const model of this.all) model.killAll();
  }

  #make(plan: ModelPlan): Model {
    const closed = deferred<void>();
    const model: Model = new Model(plan.spec, this.#resources, {
      onFirstReady: () => {
        this.startUp.onFirstReady(model);
        this.#tellLoaded(model);
        this.#warnOfClashes(model);
        this.#listener.onFirstReady(model);
      },
      onReady: (...news) => this.#tell((observer) => observer.ready(model, ...news)),
      onDeath: (...news) => this.#tell((observer) => observer.died(model, ...news)),
      onMetrics: (...news) => this.#tell((observer) => observer.measured(model, ...news)),
      onLatched: (error) => this.startUp.onLatched(model, error, this.labelOf(plan.spec)),
      onClosed: () => {
        closed.resolve();
        if (!this.registry.has(model)) this.#forget(model);
      },
    });
    this.#kept.set(model, { closed, lent: new Set([plan.release]), files: [] });
    return model;
  }

  #tell(news: (observer: WorkerObserver) => void): void {
    for (const observer of this.#observers) news(observer);
  }

  /** To the letter, as Multi Model Server has it: scripts look for it. An app that is named on the command line has other news. */
  #tellLoaded(model: Model): void {
    const isFirst = this.registry
      .describe()
      .some((registered) => registered.model === model && registered.isFirst);
    if (this.#isMmsMode || !isFirst) this.#log.info(`Model ${model.spec.name} loaded.`);
  }

  #warnOfProgram({ spec: { program } }: ModelPlan): void {
    for (const warning of program.warnings) this.#log.warn(warning);
  }

  #warnOfClashes(model: Model): void {
    const paths = routeClashes(model, this.registry);
    if (paths.length > 0) this.#log.warn(clashText(paths));
  }

  /** Its last worker is gone, and it was unregistered: nothing of it stays. */
  #forget(model: Model): void {
    this.#unwatch(model);
    for (const release of this.#kept.get(model)?.lent ?? []) release();
    this.#kept.delete(model);
    model.dispatcher.close();
    this.startUp.forget(model);
    this.#log.info(`Model ${model.spec.name} unregistered.`); // to the letter: scripts look for it
  }

  #unwatch(model: Model): void {
    for (const watched of this.#kept.get(model)?.files ?? []) watched.close();
  }

  async #watch(model: Model, { program } = model.spec): Promise<void> {
    if (!this.#options.watch) return;
    const listener = {
      onChange: (files: readonly string[]) => this.#onAppChanged(model, files),
      onProblem: (problem: string) => this.#log.error(`--watch: ${problem}`),
    };
    const kept = this.#kept.get(model) as Kept;
    const { watches, isSingleFile = false } = program;
    kept.files = watches.map((path) => new AppFiles(path, APP_SOURCES, listener, isSingleFile));
    await Promise.all(kept.files.map((files) => files.open()));
  }

  #onAppChanged(model: Model, files: readonly string[]): void {
    const whose = this.#isNamed ? ` of ${labelOf(model.spec)}` : '';
    this.#log.info(`${changeText(files)} changed: starting the workers${whose} again`);
    model.replaceAtOnce(model.spec, retireLimits(this.#options.drainTimeout));
  }

  /** From the second model on, lines of the log say whose they are. */
  #nameIfSeveral(): void {
    if (this.registry.count > 1) this.#isNamed = true;
  }

  /** Whose a line of the log is; empty while there is only one model. */
  labelOf(ref: FullModelRef): string {
    return this.#isNamed ? labelOf(ref) : '';
  }
}

function giveBack(lent: Set<Release>, releases: readonly Release[]): void {
  for (const release of releases) {
    lent.delete(release);
    release();
  }
}

/** A worker that is killed at once needs some of it: also where nobody waits for the end of a model, its successor does. */
const LEAST_LEAVE_MS = 5000;
