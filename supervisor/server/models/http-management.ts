/** Answers what management dialects ask of the server's models. The core does the work; here it is put together. */
import { ServeError } from '../../../protocol/errors.js';
import type {
  AdminOptions,
  ModelFacts,
  ModelsAdmin,
  NewModel,
  ScaleEnd,
  Scaling,
  UnregisterEnd,
} from '../../http/request/model-management.js';
import { within } from '../../machine/within.js';
import { needsNewWorkers } from '../../models/generations.js';
import type { ModelSpec } from '../../models/model-spec.js';
import type { Model } from '../../models/model.js';
import type { FullModelRef, ModelRef, Outcome, Registered, WorkerBounds } from '../../models/models.js';
import { MANAGEMENT_NAMES } from '../../options/limit-names.js';
import { MODEL_NAME_RULE, isModelName } from '../../options/model-name.js';
import { resolveModelOptions, type OptionSource, type ResolvedOptions } from '../../options/resolve.js';
import type { ModelStore } from '../../store/model-store.js';
import { releasedOnFailure } from '../../store/stored-model.js';
import { retireLimits } from '../../processes/worker-stop.js';
import { modelFacts } from '../../status/model-facts.js';
import { planStored } from '../../plan/plan-models.js';
import type { RecentCalls } from '../../status/recent-calls.js';
import type { ServedModels } from './served-models.js';

export interface AdminFacts {
  readonly resolved: ResolvedOptions;
  /** Folder that the server was started in. */
  readonly cwd: string;
  readonly store: Pick<ModelStore, 'find'>;
  readonly recent: Pick<RecentCalls<Model>, 'of'>;
}

export class ServerAdmin implements ModelsAdmin {
  readonly #served: ServedModels;
  readonly #facts: AdminFacts;

  constructor(served: ServedModels, facts: AdminFacts) {
    this.#served = served;
    this.#facts = facts;
  }

  async register({ url, name, handler, runtime, signal, ...options }: NewModel): Promise<FullModelRef> {
    const query = {
      url,
      ...(name === undefined ? {} : { name }),
      ...(handler === undefined ? {} : { handler }),
      ...(runtime === undefined ? {} : { runtime }),
      ...(signal === undefined ? {} : { signal }),
    };
    const stored = await this.#facts.store.find(query);
    const plan = await releasedOnFailure(stored.release, async () => {
      if (!isModelName(stored.name))
        throw new ServeError('SERVE_BAD_REQUEST', `A model's name is made of ${MODEL_NAME_RULE}.`);
      return planStored(stored, sourceOf(options), this.#facts.resolved, this.#facts.cwd);
    });
    const { spec } = await this.#served.register(plan);
    return { name: spec.name, version: spec.version };
  }

  scale(ref: ModelRef, bounds: WorkerBounds, drainMs: number): Scaling {
    const { accepted, settled } = this.#served.scale(ref, bounds, retireLimits(drainMs));
    return this.#scaling(accepted, (model) => this.#scaleEnd(model, settled));
  }

  change(ref: ModelRef, options: AdminOptions): Scaling {
    const { registry } = this.#served;
    const model = registry.registered(ref);
    const limits = retireLimits(this.#facts.resolved.options.drainTimeout);
    const specUnder = ({ spec }: Model): ModelSpec => ({
      ...spec,
      resolved: resolveModelOptions(spec.resolved, sourceOf(options), spec.url),
    });
    const hasToBegin = needsNewWorkers(model.spec, specUnder(model));
    const { accepted, settled } = registry.replace(ref, (now) => now.replace(specUnder(now), limits));
    if (hasToBegin) return this.#scaling(accepted, () => this.#scaleEnd(model, settled));
    const { wantedWorkers: wanted, readyWorkers: ready } = model;
    return this.#scaling(accepted, () => Promise.resolve({ result: 'done', wanted, ready, error: null }));
  }

  async unregister(ref: ModelRef, timeoutMs: number): Promise<UnregisterEnd> {
    const { settled } = this.#served.registry.turnAway(ref, retireLimits(timeoutMs));
    const outcome = timeoutMs === 0 ? null : await within(timeoutMs, settled);
    if (outcome === null) return 'timedOut';
    return outcome.result === 'done' ? 'gone' : 'interrupted';
  }

  setDefault(ref: FullModelRef): void {
    this.#served.registry.setDefault(ref);
  }

  describe(): readonly ModelFacts[] {
    const { recent } = this.#facts;
    return this.#served.registry
      .describe()
      .map((registered) => modelFacts(registered, recent.of(registered.model)));
  }

  #scaling(accepted: FullModelRef, settle: (model: Model) => Promise<ScaleEnd>): Scaling {
    const model = this.#served.registry.find(accepted);
    const { spec } = model;
    const { bounds } = this.#registered(model) ?? { bounds: null };
    const isLastWord = (): boolean => {
      const now = this.#registered(model);
      return now?.isLeaving === false && now.bounds === bounds && model.spec === spec;
    };
    return { accepted, settled: settle(model), isLastWord };
  }

  async #scaleEnd(model: Model, settled: Promise<Outcome>): Promise<ScaleEnd> {
    const limitMs = model.options.initTimeout;
    const asked = model.wantedWorkers;
    const ended = within(limitMs, settled);
    const error = await model.whenOneGaveUp(ended);
    const { wantedWorkers: wanted, readyWorkers: ready } = model;
    if (error !== null) return { result: 'failed', wanted, ready, error };
    const outcome = await ended;
    if (asked > 0 && this.#registered(model)?.isLeaving !== false)
      return { result: 'failed', wanted, ready, error: leftMistake(model) };
    if (outcome !== null && outcome.wanted !== asked)
      return { result: 'unfinished', wanted, ready, error: null }; // somebody has asked for another number since
    if (outcome !== null) return { ...outcome, result: outcome.result === 'done' ? 'done' : 'failed' };
    if (limitMs > SHORTEST_START_MS) return { result: 'unfinished', wanted, ready, error: null };
    return { result: 'failed', wanted, ready, error: new ServeError('SERVE_INIT_TIMEOUT') };
  }

  #registered(model: Model): Registered<Model> | undefined {
    return this.#served.registry.describe().find((candidate) => candidate.model === model);
  }
}

function leftMistake({ spec }: Model): ServeError {
  const message = `The model ${spec.name} was unregistered before its workers were there.`;
  return new ServeError('SERVE_MODEL_NOT_FOUND', message);
}

/** Numbers are ms, and were checked by whoever read them. */
function sourceOf({ batchSize, maxBatchDelayMs, runTimeoutMs, initTimeoutMs }: AdminOptions): OptionSource {
  const values = {
    batchSize,
    maxBatchDelay: maxBatchDelayMs,
    runTimeout: runTimeoutMs,
    initTimeout: initTimeoutMs === undefined ? undefined : Math.max(initTimeoutMs, SHORTEST_START_MS),
  };
  return { values, where: (name) => MANAGEMENT_NAMES[name as keyof typeof values], numbersAreMs: true };
}

/** In this time no worker can start: what a start-up time of 0 means. */
const SHORTEST_START_MS = 1;
