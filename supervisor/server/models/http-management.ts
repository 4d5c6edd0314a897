/** Implements `ModelManagement`, by which HTTP dialects change models, with the registry and the model store. */
import { ServeError } from '../../../protocol/errors.js';
import {
  isStartFailure,
  type ManagedOptions,
  type ModelManagement,
  type ModelRecord,
  type NewModel,
} from '../../http/request/model-management.js';
import { within } from '../../machine/within.js';
import { needsNewWorkers } from '../../models/generations.js';
import type { ModelSpec } from '../../models/model-spec.js';
import type { Model } from '../../models/model.js';
import type {
  Accepted,
  FullModelRef,
  ModelRef,
  Outcome,
  Registered,
  WorkerBounds,
} from '../../models/models.js';
import { MANAGEMENT_NAMES } from '../../options/limit-names.js';
import { boundsOf } from '../../options/model-settings.js';
import { MODEL_NAME_RULE, isModelName } from '../../options/model-name.js';
import { resolveModelOptions, type OptionSource, type ResolvedOptions } from '../../options/resolve.js';
import type { ModelStore } from '../../store/model-store.js';
import { releasedOnFailure } from '../../store/stored-model.js';
import { retireLimits } from '../../processes/worker-stop.js';
import { describedState } from '../../status/snapshot.js';
import { modelRecord } from '../../status/model-record.js';
import { planStored } from '../../plan/plan-models.js';
import type { RecentCalls } from '../../status/recent-calls.js';
import type { ServedModels } from './served-models.js';

export interface ManagementParts {
  readonly resolved: ResolvedOptions;
  /** Folder in which the server was started. */
  readonly cwd: string;
  readonly store: Pick<ModelStore, 'find'>;
  readonly recent: Pick<RecentCalls<Model>, 'of'>;
}

export class HttpManagement implements ModelManagement {
  readonly #served: ServedModels;
  readonly #parts: ManagementParts;

  constructor(served: ServedModels, parts: ManagementParts) {
    this.#served = served;
    this.#parts = parts;
  }

  async register({ url, name, handler, runtime, signal, ...options }: NewModel): Promise<FullModelRef> {
    const query = {
      url,
      ...(name === undefined ? {} : { name }),
      ...(handler === undefined ? {} : { handler }),
      ...(runtime === undefined ? {} : { runtime }),
      ...(signal === undefined ? {} : { signal }),
    };
    const stored = await this.#parts.store.find(query);
    const plan = await releasedOnFailure(stored.release, async () => {
      if (!isModelName(stored.name))
        throw new ServeError('SERVE_BAD_REQUEST', `A model's name is made of ${MODEL_NAME_RULE}.`);
      return planStored(stored, sourceOf(options), this.#parts.resolved, this.#parts.cwd);
    });
    const { spec } = await this.#served.register(plan);
    return { name: spec.name, version: spec.version };
  }

  firstBounds(ref: FullModelRef): WorkerBounds {
    const { options, modelSettings } = this.#parts.resolved;
    const count = options.defaultWorkers ?? 0;
    return boundsOf(modelSettings?.of(ref) ?? null, count) ?? { min: count, max: count };
  }

  start(ref: ModelRef, bounds: WorkerBounds): Accepted {
    const { drainTimeout } = this.#parts.resolved.options;
    const { registry, startUp } = this.#served;
    const { accepted, settled } = this.#served.scale(ref, bounds, retireLimits(drainTimeout));
    const model = registry.find(accepted);
    const isUnchanged = this.#changeCheck(model);
    startUp.expectTakeBack(model, isUnchanged);
    const end = async (): Promise<Outcome> => {
      const outcome = await this.#withinInitTimeout(model, settled, (ended) => model.whenFirstFailed(ended));
      if (isStartFailure(outcome) && isUnchanged()) await this.#takeBack(accepted);
      else startUp.keep(model);
      return outcome;
    };
    return { accepted, settled: end() };
  }

  scale(ref: ModelRef, bounds: WorkerBounds, drainMs: number): Accepted {
    const { accepted, settled } = this.#served.scale(ref, bounds, retireLimits(drainMs));
    const model = this.#served.registry.find(accepted);
    return { accepted, settled: this.#withinInitTimeout(model, settled) };
  }

  change(ref: ModelRef, options: ManagedOptions): Accepted {
    const { registry } = this.#served;
    const model = registry.registered(ref);
    const limits = retireLimits(this.#parts.resolved.options.drainTimeout);
    const specUnder = ({ spec }: Model): ModelSpec => ({
      ...spec,
      resolved: resolveModelOptions(spec.resolved, sourceOf(options), spec.url),
    });
    const startsWorkers = needsNewWorkers(model.spec, specUnder(model));
    const { accepted, settled } = registry.replace(ref, (now) => now.replace(specUnder(now), limits));
    if (startsWorkers) return { accepted, settled: this.#withinInitTimeout(model, settled) };
    const { wantedWorkers: wanted, readyWorkers: ready } = model;
    return { accepted, settled: Promise.resolve({ result: 'done', wanted, ready, error: null }) };
  }

  unregister(ref: ModelRef, timeoutMs: number): Accepted {
    const { accepted, settled } = this.#served.registry.unregisterAtOnce(ref, retireLimits(timeoutMs));
    const end = async (): Promise<Outcome> =>
      (timeoutMs === 0 ? null : await within(timeoutMs, settled)) ?? UNFINISHED_END;
    return { accepted, settled: end() };
  }

  setDefault(ref: FullModelRef): void {
    this.#served.registry.setDefault(ref);
  }

  describe(showsWords: boolean): readonly ModelRecord[] {
    const { recent } = this.#parts;
    return this.#served.registry.describe().map((registered) => {
      const state = describedState(registered, this.#served);
      return modelRecord(registered, state, recent.of(registered.model), showsWords);
    });
  }

  /** Returns a function that checks whether the model is still registered and was not changed since this call. */
  #changeCheck(model: Model): () => boolean {
    const { spec } = model;
    const { bounds } = this.#registered(model) ?? { bounds: null };
    return () => {
      const now = this.#registered(model);
      return now?.isLeaving === false && now.bounds === bounds && model.spec === spec;
    };
  }

  async #takeBack(ref: FullModelRef): Promise<void> {
    try {
      await this.unregister(ref, TAKE_BACK_MS).settled;
    } catch (thrown) {
      if (!(thrown instanceof ServeError)) throw thrown; // it was unregistered already, or has become the default
    }
  }

  /** Resolves with the outcome of a change that starts workers, once `failure` resolves or the init timeout has passed. */
  async #withinInitTimeout(
    model: Model,
    settled: Promise<Outcome>,
    failure = (ended: Promise<unknown>) => model.whenOneLatched(ended),
  ): Promise<Outcome> {
    const limitMs = model.options.initTimeout;
    const target = model.wantedWorkers;
    const ended = within(limitMs, settled);
    const error = await failure(ended);
    const { wantedWorkers: wanted, readyWorkers: ready } = model;
    if (error !== null) return { result: 'failed', wanted, ready, error };
    const outcome = await ended;
    if (target > 0 && this.#registered(model)?.isLeaving !== false)
      return { result: 'failed', wanted, ready, error: leftMistake(model) };
    if (outcome !== null && outcome.wanted !== target)
      return { result: 'unfinished', wanted, ready, error: null }; // it was scaled again since
    if (outcome !== null) return { ...outcome, result: outcome.result === 'done' ? 'done' : 'failed' };
    if (limitMs > SHORTEST_START_MS) return { result: 'unfinished', wanted, ready, error: null };
    return { result: 'failed', wanted, ready, error: new ServeError('SERVE_INIT_TIMEOUT') };
  }

  #registered(model: Model): Registered<Model> | undefined {
    return this.#served.registry.describe().find((candidate) => candidate.model === model);
  }
}

function leftMistake({ spec }: Model): ServeError {
  const message = `The model ${spec.name} was unregistered before its workers were ready.`;
  return new ServeError('SERVE_MODEL_NOT_FOUND', message);
}

/** The options as a source for `resolveModelOptions`. Durations are in ms; the dialect has checked them. */
function sourceOf({ batchSize, maxBatchDelayMs, runTimeoutMs, initTimeoutMs }: ManagedOptions): OptionSource {
  const values = {
    batchSize,
    maxBatchDelay: maxBatchDelayMs,
    runTimeout: runTimeoutMs,
    initTimeout: initTimeoutMs === undefined ? undefined : Math.max(initTimeoutMs, SHORTEST_START_MS),
  };
  return { values, where: (name) => MANAGEMENT_NAMES[name as keyof typeof values], numbersAreMs: true };
}

/** Time for the workers of a model that could not start to end; they have no calls. */
const TAKE_BACK_MS = 5000;

const UNFINISHED_END: Outcome = { result: 'unfinished', wanted: 0, ready: 0, error: null };

/** Stands for an init timeout of 0, within which no worker can start. */
const SHORTEST_START_MS = 1;
