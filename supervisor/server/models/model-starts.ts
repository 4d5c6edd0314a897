/** Starts the first workers of a model that was registered while the server runs, and bounds what waits for workers. */
import { ServeError } from '../../../protocol/errors.js';
import { within } from '../../machine/within.js';
import type { Model } from '../../models/model.js';
import type {
  Accepted,
  FullModelRef,
  ModelRef,
  Outcome,
  Registered,
  WorkerBounds,
} from '../../models/models.js';
import { isStartFailure } from '../../models/outcome.js';
import { retireLimits } from '../../processes/worker-stop.js';
import type { ServedModels } from './served-models.js';

export class ModelStarts {
  readonly #served: ServedModels;
  readonly #drainTimeoutMs: number;

  constructor(served: ServedModels, drainTimeoutMs: number) {
    this.#served = served;
    this.#drainTimeoutMs = drainTimeoutMs;
  }

  /** See `ModelManagement.start`. */
  start(ref: ModelRef, bounds: WorkerBounds): Accepted {
    const { registry, startUp } = this.#served;
    const { accepted, settled } = this.#served.scale(ref, bounds, retireLimits(this.#drainTimeoutMs));
    const model = registry.find(accepted);
    const isUnchanged = this.#changeCheck(model);
    startUp.expectTakeBack(model, isUnchanged);
    // An order to load is a reason for a worker, though a model that scales itself may do without.
    const loaded = model.takesCalls && model.wantedWorkers === 0 ? model.load() : settled;
    const end = async (): Promise<Outcome> => {
      const outcome = await this.withinInitTimeout(model, loaded, (ended) => model.whenFirstFailed(ended));
      if (isStartFailure(outcome) && isUnchanged()) await this.takeBack(accepted);
      else startUp.keep(model);
      return outcome;
    };
    return { accepted, settled: end() };
  }

  /** Unregisters a model whose workers cannot start. */
  async takeBack(ref: FullModelRef): Promise<void> {
    try {
      const { settled } = this.#served.registry.unregisterAtOnce(ref, retireLimits(TAKE_BACK_MS));
      await within(TAKE_BACK_MS, settled);
    } catch (thrown) {
      if (!(thrown instanceof ServeError)) throw thrown; // it was unregistered already, or has become the default
    }
  }

  /** Resolves with the outcome of a change that starts workers, once `failure` resolves or the init timeout has passed. */
  async withinInitTimeout(
    model: Model,
    settled: Promise<Outcome>,
    failure = (ended: Promise<unknown>) => model.whenOneFails(ended),
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
    const isCounted = model.bounds === null; // else its calls may have changed the number
    if (outcome !== null && outcome.wanted !== target && isCounted)
      return { result: 'unfinished', wanted, ready, error: null }; // it was scaled again since
    if (outcome !== null) return { ...outcome, result: outcome.result === 'done' ? 'done' : 'failed' };
    if (limitMs > SHORTEST_START_MS) return { result: 'unfinished', wanted, ready, error: null };
    return { result: 'failed', wanted, ready, error: new ServeError('SERVE_INIT_TIMEOUT') };
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

  #registered(model: Model): Registered<Model> | undefined {
    return this.#served.registry.describe().find((candidate) => candidate.model === model);
  }
}

function leftMistake({ spec }: Model): ServeError {
  const message = `The model ${spec.name} was unregistered before its workers were ready.`;
  return new ServeError('SERVE_MODEL_NOT_FOUND', message);
}

/** Time for the workers of a model that could not start to end; they have no calls. */
const TAKE_BACK_MS = 5000;

/** Stands for an init timeout of 0, within which no worker can start. */
export const SHORTEST_START_MS = 1;
