/** Registers models of the store by their place, and loads them by their name, again if they are registered already. */
import { ServeError } from '../../../protocol/errors.js';
import type { NewModel, StoredModels } from '../../http/request/model-management.js';
import { within } from '../../machine/limit-timer.js';
import { boundsFor } from '../../models/bounds.js';
import type { ModelPlan, ModelSpec } from '../../models/model-spec.js';
import type { Model } from '../../models/model.js';
import type { FullModelRef, Outcome, WorkerBounds } from '../../models/models.js';
import { UNFINISHED, isStartFailure } from '../../models/outcome.js';
import { MODEL_NAME_RULE, isModelName, labelOf } from '../../options/model-name.js';
import { NO_OPTIONS, type OptionSource } from '../../options/resolve.js';
import { boundsFactsOf } from '../../plan/plan-devices.js';
import { planVersions } from '../../plan/plan-models.js';
import type { ServerPlan } from '../../plan/plan-server.js';
import { namedEntry, nameOfEntry, releasedOnFailure, type StoreQuery } from '../../store/stored-model.js';
import type { ModelAdmin } from './admin.js';

export class StoreLoads implements StoredModels {
  readonly #admin: ModelAdmin;
  readonly #plan: Pick<ServerPlan, 'store' | 'devices' | 'cwd'>;
  /** The latest load of each name, while it goes on; it does not reject. */
  readonly #latest = new Map<string, Promise<void>>();

  constructor(admin: ModelAdmin, plan: Pick<ServerPlan, 'store' | 'devices' | 'cwd'>) {
    this.#admin = admin;
    this.#plan = plan;
  }

  /** See `StoredModels.register`. */
  async register({ options, ...query }: NewModel): Promise<FullModelRef> {
    const [plan, ...others] = await this.#plans(query, options);
    const { spec } = await this.#admin.add(plan);
    const present = new Set(this.#admin.registry.describe().map(({ model }) => labelOf(model.spec)));
    // A version that is registered already stays as it is.
    for (const other of others) if (!present.has(labelOf(other.spec))) await this.#admin.register(other);
    return { name: spec.name, version: spec.version };
  }

  /** See `StoredModels.list`. */
  async list(): Promise<readonly string[]> {
    const models = this.#models();
    const taken = new Set(models.flatMap(({ spec: { name, url } }) => [name, url]));
    const names = (await this.#plan.store.urls()).filter((url) => !taken.has(url)).map(nameOfEntry);
    return [...new Set(names)].filter((name) => isModelName(name) && !taken.has(name));
  }

  /** See `StoredModels.load`. */
  load(name: string, signal: AbortSignal): Promise<void> {
    const before = this.#latest.get(name) ?? Promise.resolve();
    const loading = before.then(() => this.#load(name, signal));
    const ended = loading
      .catch(() => {})
      .finally(() => {
        if (this.#latest.get(name) === ended) this.#latest.delete(name);
      });
    this.#latest.set(name, ended);
    return loading;
  }

  async #load(name: string, signal: AbortSignal): Promise<void> {
    if (!isModelName(name))
      throw new ServeError('SERVE_BAD_REQUEST', `A model's name is made of ${MODEL_NAME_RULE}.`);
    const query = { url: await this.#urlOf(name), name, mayGoUnnamed: true, signal };
    const plans = await this.#plans(query, NO_OPTIONS);
    const [{ spec: newest }] = plans;
    const added = await this.#loadVersions([...plans].reverse());
    if (added.includes(newest)) this.#admin.registry.setDefault(newest);
    const versions = new Set(plans.map(({ spec }) => spec.version));
    for (const { spec } of this.#models())
      if (spec.name === name && spec.url === newest.url && !versions.has(spec.version))
        this.#admin.registry.unregister(spec, this.#admin.limits); // its accepted calls end first
  }

  /**
   * Loads one version after the other; resolves with those that are new. If one fails, these are taken back, and the others
   * are not tried.
   */
  async #loadVersions(left: ModelPlan[]): Promise<readonly ModelSpec[]> {
    const added: ModelSpec[] = [];
    try {
      for (let plan = left.shift(); plan !== undefined; plan = left.shift()) {
        const { name, version } = plan.spec;
        const present = this.#models().find(({ spec }) => spec.name === name && spec.version === version);
        await (present === undefined ? this.#add(plan) : this.#renew(present, plan));
        if (present === undefined) added.push(plan.spec);
      }
      return added;
    } catch (thrown) {
      for (const plan of left) plan.release();
      for (const spec of added.reverse()) await this.#admin.takeBack(spec);
      throw thrown;
    }
  }

  async #add(plan: ModelPlan): Promise<void> {
    await this.#admin.add(plan);
    const outcome = await this.#admin.start(plan.spec, this.#boundsOf(plan)).settled;
    if (outcome.result !== 'done' && !isStartFailure(outcome)) await this.#admin.takeBack(plan.spec);
    check(outcome);
  }

  /** Gives a registered version what the store has now. */
  async #renew(model: Model, plan: ModelPlan): Promise<void> {
    const { limits } = this.#admin;
    const { settled } = this.#admin.replace(plan, limits, true);
    // Workers are replaced one by one; each has ended its calls and started within these limits.
    const eachMs = model.options.initTimeout + limits.finishMs + limits.graceMs;
    const limitMs = Math.min(Math.max(1, model.crew.wanted) * eachMs, LONGEST_TIMER_MS);
    check((await within(limitMs, settled)) ?? UNFINISHED);
    if (!this.#models().includes(model))
      throw new ServeError('SERVE_MODEL_NOT_FOUND', 'it was unregistered before its workers were ready.');
    if (model.crew.wanted > 0) return;
    const scaled = this.#admin.resize(plan.spec, this.#boundsOf(plan));
    const loaded = model.crew.wanted === 0 ? model.load() : scaled.settled;
    check(await this.#admin.outcomeInTime(model, loaded));
  }

  /** Plans all versions of a model that the store has, the newest first. */
  async #plans(query: StoreQuery, own: OptionSource): Promise<[ModelPlan, ...ModelPlan[]]> {
    const { store, cwd } = this.#plan;
    const stored = await store.find(query);
    return releasedOnFailure(stored.release, async () => {
      if (!isModelName(stored.name))
        throw new ServeError('SERVE_BAD_REQUEST', `A model's name must consist of ${MODEL_NAME_RULE}.`);
      return planVersions(stored, own, this.#admin.optionsFor(stored.name), cwd);
    });
  }

  /**
   * The place of the model in the store: where its default version was registered from, else the entry of its name.
   * @throws SERVE_MODEL_NOT_FOUND; SERVE_MODEL_CONFLICT for the name of an app that is not from the store
   */
  async #urlOf(name: string): Promise<string> {
    const { store } = this.#plan;
    const urls = await store.urls();
    const { registry } = this.#admin;
    const own = this.#models().find(({ spec }) => spec.name === name && registry.isDefault(spec))?.spec;
    if (own !== undefined && own.url === own.app)
      throw new ServeError(
        'SERVE_MODEL_CONFLICT',
        'the server has a model of this name that is not from the store.',
      );
    const url = urls.find((one) => one === own?.url) ?? namedEntry(urls, name);
    if (url !== null) return url;
    const where = store.exists
      ? 'the model store has no such model'
      : 'there is no model store (--model-store)';
    throw new ServeError('SERVE_MODEL_NOT_FOUND', `${where}.`);
  }

  #boundsOf(plan: ModelPlan): WorkerBounds {
    return boundsFor('load', boundsFactsOf(plan, this.#plan.devices));
  }

  /** The registered models. */
  #models(): Model[] {
    return [...this.#admin.registry.all()];
  }
}

/** @throws the error of a worker that cannot start, SERVE_INIT_TIMEOUT */
function check({ result, error }: Outcome): void {
  if (result === 'done') return;
  if (error !== null) throw error;
  throw result === 'unfinished'
    ? new ServeError('SERVE_INIT_TIMEOUT')
    : new ServeError('SERVE_INIT_FAILED', 'its workers could not start.');
}

const LONGEST_TIMER_MS = 2 ** 31 - 1;
