/**
 * The models of one server: adds, starts, changes and removes them, and frees each after the end of its last worker.
 * Before: programs (`program-management.ts`) and management dialects check what is asked; `store-loads.ts` finds models of
 * the store. After: the registry finds the models; `start-up.ts` decides what follows when one is ready or gives up.
 */
import { ServeError } from '../../../protocol/errors.js';
import type { ModelManagement } from '../../http/request/model-management.js';
import { within } from '../../machine/limit-timer.js';
import { boundsFor, setBounds } from '../../models/bounds.js';
import { needsNewWorkers } from '../../models/generations.js';
import type { ModelPresence } from '../../models/model-health.js';
import type { ModelEvent, ModelObserver, ServerResources } from '../../models/model-resources.js';
import type { FirstModel, ModelPlan, ModelSpec } from '../../models/model-spec.js';
import { ManagedModel, noWorker, type Model } from '../../models/model.js';
import {
  Registry,
  type Accepted,
  type ModelRef,
  type Outcome,
  type WorkerBounds,
} from '../../models/models.js';
import { UNFINISHED, isStartFailure, outcomeOf } from '../../models/outcome.js';
import { bareProgram } from '../../models/start-worker.js';
import type { Log } from '../../observe/log.js';
import { labelOf, type FullModelRef } from '../../options/model-name.js';
import {
  SHORTEST_START_MS,
  asOnlyModel,
  resolveModelOptions,
  type OptionSource,
  type ResolvedOptions,
} from '../../options/resolve.js';
import type { RetireLimits } from '../../processes/worker-listener.js';
import { retireLimits } from '../../processes/worker-stop.js';
import { releasedOnFailure } from '../../store/stored-model.js';
import { changeText } from '../../watch/app-files.js';
import { ModelFiles } from './model-files.js';
import { StartUp } from './start-up.js';

export class ModelAdmin implements ModelManagement {
  readonly registry: Registry;
  readonly startUp: StartUp;
  /** Time limits for workers that end, as the server's options say. */
  readonly limits: RetireLimits;
  /** They receive the events of all models, after this class has handled them. */
  readonly observers: ModelObserver<Model>[] = [];
  readonly #resolved: ResolvedOptions;
  readonly #isMmsMode: boolean;
  readonly #log: Log;
  readonly #resources: ServerResources;
  /** The models that have not ended. */
  readonly #files = new Map<ManagedModel, ModelFiles>();
  /** Whether log lines name their model: from the second one on. */
  #isNamed: boolean;

  /** `onEnd` is called if no model can serve: the server must end. */
  constructor(
    resolved: ResolvedOptions,
    isMmsMode: boolean,
    resources: Omit<ServerResources, 'labelOf' | 'isDefault'>,
    onEnd: (error: ServeError) => void,
  ) {
    const { options } = resolved;
    this.#resolved = resolved;
    this.registry = new Registry(Math.max(options.unregisterTimeout, LEAST_LEAVE_MS));
    this.#isMmsMode = isMmsMode;
    this.#isNamed = isMmsMode; // models come and go there, so log lines always name their model
    this.#log = resources.log;
    this.limits = resources.retireLimits;
    this.#resources = {
      ...resources,
      labelOf: (ref) => this.labelOf(ref),
      isDefault: (ref) => this.registry.isDefault(ref),
    };
    resources.gate.onIdle = () => this.#keepSpares();
    this.startUp = new StartUp(options, isMmsMode, resources.log, onEnd);
  }

  /** All models, including the ones that are being unregistered. */
  get all(): readonly ManagedModel[] {
    return [...this.#files.keys()];
  }

  /** The server's options for a new plan of the model of this name: those of its only model, if it is that. */
  optionsFor(name: string): ResolvedOptions {
    const names = this.registry.describe().map(({ model }) => model.spec.name);
    const isOnly = names.length > 0 && names.every((one) => one === name);
    return isOnly ? asOnlyModel(this.#resolved) : this.#resolved;
  }

  /** Adds the first models, and starts their workers. With `watch`, watches their files first. */
  async startFirst(plans: readonly FirstModel[]): Promise<void> {
    const models = plans.map((plan) => this.#make(plan));
    for (const [i, { isDefault, bounds }] of plans.entries())
      this.registry.addFirst(models[i] as ManagedModel, isDefault, bounds);
    this.startUp.begin(models);
    await Promise.all(models.map((model) => this.#watch(model))); // before the load, so that no change is missed
    for (const [i, model] of models.entries()) {
      const { placements } = plans[i] as FirstModel;
      model.start(placements);
      if (placements.length === 0) this.startUp.leaveOut(model);
    }
    this.#keepSpares();
  }

  /** Adds a model, which has no workers until it is scaled. @throws SERVE_MODEL_CONFLICT, SERVE_SHUTTING_DOWN */
  async add(plan: ModelPlan): Promise<ManagedModel> {
    const make = (): ManagedModel => this.#make(plan);
    const model = await releasedOnFailure(plan.release, () => this.registry.register(plan.spec, make));
    const of = this.#isNamed ? { model: labelOf(plan.spec) } : {};
    for (const warning of plan.spec.program.warnings) this.#log.warn(of, warning);
    await this.#watch(model);
    return model;
  }

  /** As `add`; a model that scales itself begins to. */
  async register(plan: ModelPlan): Promise<ManagedModel> {
    const model = await this.add(plan);
    const own = model.sizing.findOwnBounds();
    if (own !== null) this.resize(model.spec, own);
    return model;
  }

  /** See `ModelManagement.boundsFor`. */
  boundsFor(
    occasion: 'program' | 'registration' | 'change',
    ref: ModelRef,
    asked: Partial<WorkerBounds>,
  ): WorkerBounds {
    const model = this.registry.registered(ref);
    const { options, settingOf } = this.#resolved;
    const ofStore = options.defaultWorkers ?? 0;
    const set = setBounds(settingOf?.(model.spec) ?? null, ofStore);
    const usualCount = (): number =>
      occasion === 'registration' ? ofStore : this.#resources.devices.firstCount(model.options);
    return boundsFor(occasion, { own: model.sizing.findOwnBounds(), set, usualCount }, asked);
  }

  /** See `ModelManagement.start`. */
  start(ref: ModelRef, bounds: WorkerBounds): Accepted {
    const { accepted, settled } = this.resize(ref, bounds);
    const model = this.registry.find(accepted);
    const { onTrial } = this.startUp;
    onTrial.add(model);
    // An order to load is a reason for a worker, though a model that scales itself may do without.
    const loaded = model.health.takesCalls && model.crew.wanted === 0 ? model.load() : settled;
    const end = async (): Promise<Outcome> => {
      const outcome = await this.outcomeInTime(model, this.#judged(model, loaded), 'whenFirstFailed');
      const isUnchanged = onTrial.delete(model);
      if (isUnchanged && isStartFailure(outcome)) await this.takeBack(accepted);
      return outcome;
    };
    return { accepted, settled: end() };
  }

  /** The outcome of a start once the memory budget has seen the new workers, of which it may refuse some. */
  async #judged(model: Model, started: Promise<Outcome>): Promise<Outcome> {
    const outcome = await started;
    const { memory } = this.#resources;
    if (memory === null || outcome.result !== 'done') return outcome;
    const { name, version } = model.spec;
    const error = await memory.judge(`${name}@${version}`);
    return error === null ? outcome : { ...outcome, result: 'failed', error };
  }

  /** Unregisters a model whose workers cannot start. */
  async takeBack(ref: FullModelRef): Promise<void> {
    try {
      const { settled } = this.registry.unregisterAtOnce(ref, retireLimits(LEAST_LEAVE_MS));
      await within(LEAST_LEAVE_MS, settled);
    } catch (thrown) {
      if (!(thrown instanceof ServeError)) throw thrown; // it was unregistered already, or has become the default
    }
  }

  /** See `ModelManagement.scale`. */
  scale(ref: ModelRef, bounds: WorkerBounds, drainMs: number): Accepted {
    return this.#inTime(this.resize(ref, bounds, retireLimits(drainMs)));
  }

  /** As `scale`, but settles once all workers have started or ended. */
  resize(ref: ModelRef, bounds: WorkerBounds, limits = this.limits): Accepted {
    const scaled = this.registry.scale(ref, bounds, limits);
    const model = this.registry.find(scaled.accepted);
    this.startUp.onTrial.delete(model);
    if (model.crew.wanted === 0) this.startUp.leaveOut(model);
    this.#keepSpares();
    return scaled;
  }

  /**
   * As `Model.replace`, or `Model.renew` if it `renews`, for the version that the plan names; with `watch`, watches the files
   * of the new app before it is loaded. Takes over the files of the plan. @throws as `Models.replace`
   */
  replace(plan: ModelPlan, limits: RetireLimits, renews = false): Accepted {
    const { spec, release } = plan;
    try {
      const present = this.registry.registered(spec);
      const files = this.#files.get(present) as ModelFiles;
      const giveBackBefore = files.lend(release);
      this.startUp.onTrial.delete(present);
      return this.registry.replace(spec, async (model) => {
        const keepsFiles = !renews && spec.app === model.spec.app; // only the options may have changed
        for (const warning of spec.program.warnings) this.#log.warn(warning);
        await this.#watch(model, spec);
        const outcome = await (renews ? model.renew(spec, limits) : model.replace(spec, limits));
        if (outcome.error === null && !keepsFiles) giveBackBefore();
        return outcome;
      });
    } catch (thrown) {
      release(); // there is no such version
      throw thrown;
    }
  }

  /** See `ModelManagement.change`. */
  change(ref: ModelRef, source: OptionSource): Accepted {
    const model = this.registry.registered(ref);
    const specUnder = ({ spec }: ManagedModel): ModelSpec => ({
      ...spec,
      resolved: resolveModelOptions(spec.resolved, source, spec.url),
    });
    this.startUp.onTrial.delete(model);
    const startsWorkers = needsNewWorkers(model.spec, specUnder(model));
    const change = this.registry.replace(ref, (now) => now.replace(specUnder(now), this.limits));
    if (startsWorkers) return this.#inTime(change);
    const { wanted } = model.crew;
    return { accepted: change.accepted, settled: Promise.resolve(outcomeOf(wanted, wanted, null)) };
  }

  /** See `ModelManagement.restartWorker`. */
  restartWorker(ref: ModelRef, index: number): Accepted {
    const { crew } = this.registry.registered(ref);
    if (!crew.all.some((slot) => slot.isKept && slot.index === index)) throw noWorker(index);
    return this.#inTime(this.registry.replace(ref, (now) => now.restartWorker(index, this.limits)));
  }

  /** See `ModelManagement.unregister`. */
  unregister(ref: ModelRef, timeoutMs: number): Accepted {
    const { accepted, settled } = this.registry.unregisterAtOnce(ref, retireLimits(timeoutMs));
    const end = async (): Promise<Outcome> =>
      (timeoutMs === 0 ? null : await within(timeoutMs, settled)) ?? UNFINISHED;
    return { accepted, settled: end() };
  }

  /** Resolves with the outcome of a change that starts workers, once one of them fails or the init timeout has passed. */
  async outcomeInTime(
    model: Model,
    settled: Promise<Outcome>,
    untilFailure: 'whenOneFails' | 'whenFirstFailed' = 'whenOneFails',
  ): Promise<Outcome> {
    const { crew, health, spec } = model;
    const target = crew.wanted;
    const endOf = (result: Outcome['result'], error: ServeError | null): Outcome => {
      return { result, wanted: crew.wanted, ready: crew.ready.length, error };
    };
    const limitMs = model.options.initTimeout;
    const ended = within(limitMs, settled);
    const error = await health[untilFailure](ended);
    if (error !== null) return endOf('failed', error);
    const outcome = await ended;
    if (target > 0 && this.registry.described(model)?.isLeaving !== false) {
      const mistake = `The model ${spec.name} was unregistered before its workers were ready.`;
      return endOf('failed', new ServeError('SERVE_MODEL_NOT_FOUND', mistake));
    }
    // The calls of a model that scales itself may have changed the number.
    const wasScaledAgain = outcome !== null && outcome.wanted !== target && model.sizing.bounds === null;
    if (outcome !== null && !wasScaledAgain)
      return { ...outcome, result: outcome.result === 'done' ? 'done' : 'failed' };
    if (wasScaledAgain || limitMs > SHORTEST_START_MS) return endOf('unfinished', null);
    return endOf('failed', new ServeError('SERVE_INIT_TIMEOUT'));
  }

  presenceOf(model: Model): ModelPresence {
    const { state, problem } = model.health;
    const isComingUp = this.startUp.comingUp.has(model);
    return { label: labelOf(model.spec), state, problem, isComingUp };
  }

  /** The name of a model in log lines; empty while there is only one model. */
  labelOf(ref: FullModelRef): string {
    return this.#isNamed ? labelOf(ref) : '';
  }

  /** No model is added any more, and no change of a file is noticed. */
  close(): void {
    this.registry.close();
    for (const files of this.#files.values()) files.unwatch();
  }

  /** Resolves once every worker of the present models has ended. */
  async untilClosed(): Promise<void> {
    await Promise.all([...this.#files.values()].map(({ ended }) => ended.promise));
  }

  #inTime({ accepted, settled }: Accepted): Accepted {
    return { accepted, settled: this.outcomeInTime(this.registry.find(accepted), settled) };
  }

  #make(plan: ModelPlan): ManagedModel {
    const model: ManagedModel = new ManagedModel(plan.spec, this.#resources, (event) =>
      this.#told(model, event),
    );
    this.#files.set(model, new ModelFiles(plan.release));
    if (this.#files.size > 1) this.#isNamed = true;
    return model;
  }

  #told(model: ManagedModel, event: ModelEvent): void {
    for (const observer of this.observers) observer.told(model, event);
    switch (event.type) {
      case 'firstReady':
        return this.#onFirstReady(model);
      case 'standstill':
        return this.startUp.onStandstill(model, event.standstill, this.labelOf(model.spec));
      case 'misfit':
        return this.startUp.onMisfit(model, event.error, event.wasWell);
      case 'closed':
        this.#files.get(model)?.ended.resolve();
        if (this.registry.described(model) === undefined) this.#forget(model);
        return;
      case 'ready':
      case 'died':
      case 'metrics':
        return; // for observers
    }
  }

  #onFirstReady(model: Model): void {
    this.startUp.onFirstReady(model);
    // Exactly the line of Multi Model Server, which scripts look for. Not for the first models of a server with an app.
    const isFirst = this.registry.described(model)?.isFirst === true;
    if (this.#isMmsMode || !isFirst) this.#log.info(`Model ${model.spec.name} loaded.`);
  }

  /** Frees everything of an unregistered model whose last worker has ended. */
  #forget(model: ManagedModel): void {
    this.#files.get(model)?.close();
    this.#files.delete(model);
    model.dispatcher.close();
    this.startUp.forget(model);
    this.#keepSpares();
    this.#log.info(`Model ${model.spec.name} unregistered.`); // exactly Multi Model Server's line: scripts look for it
  }

  async #watch(model: ManagedModel, { program }: ModelSpec = model.spec): Promise<void> {
    if (!this.#resolved.options.watch) return;
    await this.#files.get(model)?.watch(program, {
      onProblem: (problem) => this.#log.error(`--watch: ${problem}`),
      onChange: (files) => {
        const ofModel = this.#isNamed ? ` of ${labelOf(model.spec)}` : '';
        this.#log.info(`${changeText(files)} changed: starting the workers${ofModel} again`);
        model.replaceAtOnce(model.spec, this.limits);
      },
    });
  }

  /** Keeps spare processes for the programs of all models that take calls, unless a worker is starting: then once it has. */
  #keepSpares(): void {
    const { gate, spares, withheldEnv } = this.#resources;
    if (!gate.isIdle) return;
    const programs = this.all.filter(({ health }) => health.takesCalls).map(({ spec }) => spec.program);
    spares.keep(
      programs.filter(({ mayWait }) => mayWait === true).map((program) => bareProgram(program, withheldEnv)),
    );
  }
}

/** Time for the end of a model without calls, and the least for any: even killed workers need some. */
const LEAST_LEAVE_MS = 5000;
