/** Implements `ModelManagement`, by which HTTP dialects change models, with the registry and the model store. */
import { ServeError } from '../../../protocol/errors.js';
import type {
  FirstOptions,
  ManagedOptions,
  ModelManagement,
  ModelRecord,
  NewModel,
} from '../../http/request/model-management.js';
import { within } from '../../machine/within.js';
import { needsNewWorkers } from '../../models/generations.js';
import { noWorker } from '../../models/model-changes.js';
import type { ModelSpec } from '../../models/model-spec.js';
import type { Model } from '../../models/model.js';
import { boundsFor, setBounds } from '../../models/bounds.js';
import type { Accepted, FullModelRef, ModelRef, Outcome, WorkerBounds } from '../../models/models.js';
import { MANAGEMENT_NAMES } from '../../options/limit-names.js';
import { resolveModelOptions, type OptionSource } from '../../options/resolve.js';
import { MODEL_NAME_RULE, isModelName, labelOf } from '../../options/model-name.js';
import { releasedOnFailure } from '../../store/stored-model.js';
import { retireLimits } from '../../processes/worker-stop.js';
import { describedState } from '../../status/snapshot.js';
import { modelRecord } from '../../status/model-record.js';
import { planVersions } from '../../plan/plan-models.js';
import type { RecentCalls } from '../../status/recent-calls.js';
import { ModelStarts, SHORTEST_START_MS } from './model-starts.js';
import { StoreLoads, type StoreLoadsParts } from './store-loads.js';
import type { ServedModels } from './served-models.js';

export interface ManagementParts extends StoreLoadsParts {
  readonly recent: Pick<RecentCalls<Model>, 'of'>;
}

export class HttpManagement implements ModelManagement {
  readonly #served: ServedModels;
  readonly #parts: ManagementParts;
  readonly #starts: ModelStarts;
  readonly #loads: StoreLoads;

  constructor(served: ServedModels, parts: ManagementParts) {
    this.#served = served;
    this.#parts = parts;
    this.#starts = new ModelStarts(served, parts.resolved.options.drainTimeout);
    this.#loads = new StoreLoads(served, this.#starts, parts);
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
    const [plan, ...others] = await releasedOnFailure(stored.release, async () => {
      if (!isModelName(stored.name))
        throw new ServeError('SERVE_BAD_REQUEST', `A model's name must consist of ${MODEL_NAME_RULE}.`);
      const server = this.#served.optionsFor(stored.name, this.#parts.resolved);
      return planVersions(stored, sourceOf(options), server, this.#parts.cwd);
    });
    const { spec } = await this.#served.register(plan);
    const present = new Set(this.#served.registry.describe().map(({ model }) => labelOf(model.spec)));
    // A version that is registered already stays as it is.
    for (const other of others) {
      if (present.has(labelOf(other.spec))) continue;
      const model = await this.#served.register(other);
      const own = model.findOwnBounds();
      if (own !== null) this.scale(model.spec, own, this.#parts.resolved.options.drainTimeout);
    }
    return { name: spec.name, version: spec.version };
  }

  firstBounds(ref: FullModelRef, asked?: number): WorkerBounds {
    const { options, modelSettings } = this.#parts.resolved;
    const own = this.#served.registry.registered(ref).findOwnBounds();
    const usualCount = (): number => options.defaultWorkers ?? 0;
    const set = setBounds(modelSettings?.of(ref) ?? null, usualCount());
    return boundsFor('registration', { own, set, usualCount }, asked === undefined ? {} : { min: asked });
  }

  boundsOf(ref: ModelRef, asked: Partial<WorkerBounds>): WorkerBounds {
    const own = this.#served.registry.registered(ref).findOwnBounds();
    return boundsFor('change', { own, set: null, usualCount: () => 1 }, asked);
  }

  start(ref: ModelRef, bounds: WorkerBounds): Accepted {
    return this.#starts.start(ref, bounds);
  }

  scale(ref: ModelRef, bounds: WorkerBounds, drainMs: number): Accepted {
    const { accepted, settled } = this.#served.scale(ref, bounds, retireLimits(drainMs));
    const model = this.#served.registry.find(accepted);
    return { accepted, settled: this.#starts.withinInitTimeout(model, settled) };
  }

  restartWorker(ref: ModelRef, index: number): Accepted {
    const { registry } = this.#served;
    const model = registry.registered(ref);
    if (!model.slots.some((slot) => slot.isKept && slot.index === index)) throw noWorker(index);
    const limits = retireLimits(this.#parts.resolved.options.drainTimeout);
    const { accepted, settled } = registry.replace(ref, (now) => now.restartWorker(index, limits));
    return { accepted, settled: this.#starts.withinInitTimeout(model, settled) };
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
    if (startsWorkers) return { accepted, settled: this.#starts.withinInitTimeout(model, settled) };
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

  listStored(): Promise<readonly string[]> {
    return this.#loads.list();
  }

  load(name: string, signal: AbortSignal): Promise<void> {
    return this.#loads.load(name, signal);
  }

  describe(showsWords: boolean): readonly ModelRecord[] {
    const { recent } = this.#parts;
    return this.#served.registry.describe().map((registered) => {
      const state = describedState(registered, this.#served);
      return modelRecord(registered, state, recent.of(registered.model), showsWords);
    });
  }
}

/** The options as a source for `resolveModelOptions`. Durations are in ms; the dialect has checked them. */
function sourceOf({
  batchSize,
  maxBatchDelayMs,
  runTimeoutMs,
  initTimeoutMs,
  ...others
}: FirstOptions): OptionSource {
  const values = {
    minWorkers: others.minWorkers,
    maxWorkers: others.maxWorkers,
    idleTimeout: others.idleTimeoutMs,
    targetWait: others.targetWaitMs,
    standby: others.standby,
    batchSize,
    maxBatchDelay: maxBatchDelayMs,
    runTimeout: runTimeoutMs,
    initTimeout: initTimeoutMs === undefined ? undefined : Math.max(initTimeoutMs, SHORTEST_START_MS),
  };
  return { values, where: (name) => MANAGEMENT_NAMES[name as keyof typeof values], numbersAreMs: true };
}

const UNFINISHED_END: Outcome = { result: 'unfinished', wanted: 0, ready: 0, error: null };
