/**
 * The models of one server, from their creation to the end of their last worker: creates them, watches the files of their
 * apps, and passes their events to observers. The registry finds them; `start-up.ts` decides what follows when one is ready
 * or gives up.
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
import { bareProgram } from '../../models/start-worker.js';
import type { Log } from '../../observe/log.js';
import { labelOf, type FullModelRef } from '../../options/model-name.js';
import { asOnlyModel, type ResolvedOptions, type ServerOptions } from '../../options/resolve.js';
import type { WorkerDeath } from '../../processes/worker-death.js';
import type { AppMetric, RetireLimits } from '../../processes/worker-listener.js';
import type { Slot } from '../../slots/slot.js';
import { APP_SOURCES } from '../../runtimes/index.js';
import { releasedOnFailure, type Release } from '../../store/stored-model.js';
import { AppFiles, changeText } from '../../watch/app-files.js';
import { deferred, type Deferred } from '../../machine/deferred.js';
import { retireLimits } from '../../processes/worker-stop.js';
import type { ModelPresence } from '../../models/model-health.js';
import type { FirstModel, ModelPlan } from '../../models/model-plan.js';
import { StartUp } from './start-up.js';

export interface ServedModelsListener {
  /** A model has its first worker. */
  onFirstReady(model: Model): void;
  /** No model can serve: the server ends. */
  onEnd(error: ServeError): void;
}

/** Receives the events of the workers of all models. */
export interface WorkerObserver {
  /** A worker is ready, `startMs` after its process was started. */
  ready(model: Model, worker: number, startMs: number): void;
  /** A worker died; the state of the slot says what follows. */
  died(model: Model, slot: Slot, death: WorkerDeath): void;
  /** A worker has sent metrics of its app. */
  measured(model: Model, worker: number, metrics: readonly AppMetric[]): void;
}

/** A model that has not ended, with the files that it uses. */
interface Kept {
  readonly closed: Deferred<void>;
  /** Release the files that its workers are loaded from. */
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
  readonly #observers: WorkerObserver[] = [];
  readonly #kept = new Map<Model, Kept>();
  readonly #isMmsMode: boolean;
  #isNamed: boolean;

  constructor(
    options: ServerOptions,
    isMmsMode: boolean,
    resources: Omit<ServerResources, 'labelOf' | 'isDefault'>,
    listener: ServedModelsListener,
  ) {
    this.#options = options;
    this.registry = new Models(Math.max(options.unregisterTimeout, LEAST_LEAVE_MS));
    this.#isMmsMode = isMmsMode;
    this.#isNamed = isMmsMode; // models come and go there, so log lines always name their model
    this.#log = resources.log;
    this.#listener = listener;
    const isDefault = (ref: FullModelRef): boolean => this.registry.isDefault(ref);
    this.#resources = { ...resources, labelOf: (ref) => this.labelOf(ref), isDefault };
    resources.gate.onIdle(() => this.#keepSpares());
    resources.memory?.onMisfit((...misfit) => this.#onMisfit(...misfit));
    this.startUp = new StartUp({ ...options, isMmsMode }, resources.log, {
      onEnd: (error) => listener.onEnd(error),
    });
  }

  /** These receive the events of all workers from now on. */
  observe(...observers: readonly WorkerObserver[]): void {
    this.#observers.push(...observers);
  }

  /** The server's options for a new plan of the model of this name: those of its only model, if it is that. */
  optionsFor(name: string, server: ResolvedOptions): ResolvedOptions {
    const names = this.registry.describe().map(({ model }) => model.spec.name);
    return names.length > 0 && names.every((one) => one === name) ? asOnlyModel(server) : server;
  }

  /** All models, including the ones that are being unregistered. */
  get all(): readonly Model[] {
    return [...this.#kept.keys()];
  }

  /** Finds a model, even if it is being unregistered; null if there is none. */
  find({ name, version }: FullModelRef): Model | null {
    return this.all.find(({ spec }) => spec.name === name && spec.version === version) ?? null;
  }

  /** Resolves once every worker of the present models has ended. */
  async untilClosed(): Promise<void> {
    await Promise.all([...this.#kept.values()].map(({ closed }) => closed.promise));
  }

  add(plans: readonly ModelPlan[]): void {
    for (const plan of plans) this.registry.addFirst(this.#make(plan), plan.isDefault, plan.bounds);
    this.#nameIfSeveral();
  }

  /** Starts the workers of the added models. With `watch`, watches their files first. */
  async start(plans: readonly FirstModel[]): Promise<void> {
    const models = plans.map(({ spec }) => this.registry.find(spec));
    this.startUp.begin(models);
    await Promise.all(models.map((model) => this.#watch(model))); // before the load, so that no change is missed
    for (const [i, model] of models.entries()) {
      const { placements } = plans[i] as FirstModel;
      model.start(placements);
      if (placements.length === 0) this.#leaveOut(model);
    }
    this.#keepSpares();
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

  /** As `Model.replace`; with `watch`, watches the files of the new app before it is loaded. */
  async replace(model: Model, plan: ModelPlan, limits: RetireLimits): Promise<Outcome> {
    const isSameApp = plan.spec.app === model.spec.app; // only the options may have changed
    return this.#exchange(model, plan, isSameApp, () => model.replace(plan.spec, limits));
  }

  /** As `replace` with `Model.renew`. */
  async renew(model: Model, plan: ModelPlan, limits: RetireLimits): Promise<Outcome> {
    return this.#exchange(model, plan, false, () => model.renew(plan.spec, limits));
  }

  async #exchange(
    model: Model,
    plan: ModelPlan,
    keepsFiles: boolean,
    exchange: () => Promise<Outcome>,
  ): Promise<Outcome> {
    const { spec, release } = plan;
    this.#warnOfProgram(plan);
    if (this.#options.watch) {
      this.#unwatch(model);
      await this.#watch(model, spec);
    }
    const { lent } = this.#kept.get(model) as Kept;
    const before = keepsFiles ? [] : [...lent];
    lent.add(release);
    const settled = await exchange();
    if (settled.error === null) giveBack(lent, before); // else workers may still use the old files
    return settled;
  }

  /** @throws SERVE_CONFIG, SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND */
  scale(ref: ModelRef, bounds: WorkerBounds, limits: RetireLimits): Accepted {
    const scaled = this.registry.scale(ref, bounds, limits);
    const model = this.registry.find(scaled.accepted);
    if (model.wantedWorkers === 0) this.#leaveOut(model);
    this.#keepSpares();
    return scaled;
  }

  /** A model without workers is not waited for; one that is idle counts as ready. */
  #leaveOut(model: Model): void {
    if (model.takesCalls) this.startUp.onIdle(model);
    else this.startUp.withdraw(model);
  }

  presenceOf(model: Model): ModelPresence {
    const { health, problem, takesCalls, spec } = model;
    return { label: labelOf(spec), health, problem, takesCalls, isComingUp: this.startUp.isComingUp(model) };
  }

  /** Lets every latched or failing slot start again at once. */
  startAgain(): void {
    for (const model of this.all) model.startAgain();
  }

  /** Stops watching files. */
  unwatch(): void {
    for (const { files } of this.#kept.values()) for (const watched of files) watched.close();
  }

  /** Closes the registry and every queue, and stops watching files. */
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
        this.#logLoaded(model);
        this.#listener.onFirstReady(model);
      },
      onReady: (...event) => this.#notify((observer) => observer.ready(model, ...event)),
      onDeath: (...event) => this.#notify((observer) => observer.died(model, ...event)),
      onMetrics: (...event) => this.#notify((observer) => observer.measured(model, ...event)),
      onStandstill: (stop) => this.startUp.onStandstill(model, stop, this.labelOf(plan.spec)),
      onClosed: () => {
        closed.resolve();
        if (!this.registry.has(model)) this.#forget(model);
      },
    });
    this.#kept.set(model, { closed, lent: new Set([plan.release]), files: [] });
    return model;
  }

  #notify(send: (observer: WorkerObserver) => void): void {
    for (const observer of this.#observers) send(observer);
  }

  #onMisfit(name: string, error: ServeError, wasWell: boolean): void {
    const model = this.all.find(({ spec }) => `${spec.name}@${spec.version}` === name);
    if (model !== undefined) this.startUp.onMisfit(model, error, wasWell);
  }

  /** Keeps spare processes for the programs of all models that take calls, unless a worker is starting: then once it has. */
  #keepSpares(): void {
    const { gate, spares, withheldEnv } = this.#resources;
    if (!gate.isIdle) return;
    const programs = this.all.filter(({ takesCalls }) => takesCalls).map(({ spec }) => spec.program);
    spares.keep(
      programs.filter(({ mayWait }) => mayWait === true).map((program) => bareProgram(program, withheldEnv)),
    );
  }

  /** Logs exactly the line of Multi Model Server, which scripts look for. Not for the first models of a server with an app. */
  #logLoaded(model: Model): void {
    const isFirst = this.registry
      .describe()
      .some((registered) => registered.model === model && registered.isFirst);
    if (this.#isMmsMode || !isFirst) this.#log.info(`Model ${model.spec.name} loaded.`);
  }

  #warnOfProgram({ spec: { program } }: ModelPlan): void {
    for (const warning of program.warnings) this.#log.warn(warning);
  }

  /** Frees everything of an unregistered model whose last worker has ended. */
  #forget(model: Model): void {
    this.#unwatch(model);
    for (const release of this.#kept.get(model)?.lent ?? []) release();
    this.#kept.delete(model);
    model.dispatcher.close();
    this.startUp.forget(model);
    this.#keepSpares();
    this.#log.info(`Model ${model.spec.name} unregistered.`); // exactly Multi Model Server's line: scripts look for it
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
    const { watches, sources = APP_SOURCES, isSingleFile = false } = program;
    kept.files = watches.map((path) => new AppFiles(path, sources, listener, isSingleFile));
    await Promise.all(kept.files.map((files) => files.open()));
  }

  #onAppChanged(model: Model, files: readonly string[]): void {
    const ofModel = this.#isNamed ? ` of ${labelOf(model.spec)}` : '';
    this.#log.info(`${changeText(files)} changed: starting the workers${ofModel} again`);
    model.replaceAtOnce(model.spec, retireLimits(this.#options.drainTimeout));
  }

  /** From the second model on, log lines name their model. */
  #nameIfSeveral(): void {
    if (this.registry.count > 1) this.#isNamed = true;
  }

  /** The name of a model in log lines; empty while there is only one model. */
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

/** Least time for the end of a model: even killed workers need some, and a model of the same name waits for it. */
const LEAST_LEAVE_MS = 5000;
