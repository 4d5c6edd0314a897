/**
 * The models of a server: name -> versions -> model. Every call looks its model up here; operators change it meanwhile.
 *
 * Changes of one model take effect at once, in the order in which they are asked for; `accepted` names the version. Workers
 * that start or end their calls take time: `settled` resolves when they have. A model that was unregistered is not found
 * any more; it is described until it is unloaded, and a new one of the same name and version waits for that.
 */
import { ServeError, shuttingDown } from '../../protocol/errors.js';
import { within } from '../machine/limit-timer.js';
import type { RetireLimits } from '../processes/worker-listener.js';
import { labelOf, type FullModelRef, type ModelRef } from '../options/model-name.js';
import type { ManagedModel, Model } from './model.js';
import { outcomeOrFailure, type Outcome } from './outcome.js';
import { checkBounds, exactly, countWithin, type WorkerBounds } from './bounds.js';

export type { FullModelRef, ModelRef } from '../options/model-name.js';
export type { Outcome } from './outcome.js';
export type { WorkerBounds } from './bounds.js';

/**
 * A change that has taken effect; its workers may still be starting or stopping.
 * @example
 * async function settle({ accepted, settled }: Accepted) {
 *   console.log(accepted.name, (await settled).result);
 * }
 */
export interface Accepted {
  readonly accepted: FullModelRef;
  /** Never rejects. */
  readonly settled: Promise<Outcome>;
}

export interface Registered {
  readonly model: Model;
  /** Whether the server started with it. */
  readonly isFirst: boolean;
  /** Whether calls that name no version get this one. */
  readonly isDefault: boolean;
  /** Whether it was unregistered and ends its last calls. */
  readonly isLeaving: boolean;
  /** The bounds within which it scales itself, else as last asked for, else the number of workers that are wanted now. */
  readonly bounds: WorkerBounds;
}

interface Entry {
  readonly model: ManagedModel;
  readonly isFirst: boolean;
  isDefault: boolean;
  /** The bounds that were last asked for; null: none were. */
  asked: WorkerBounds | null;
  /** Settles once it is unloaded; null while it is registered. */
  left: Promise<Outcome> | null;
  /** The error of calls to it while it is leaving; null: that there is no such model. */
  refusal: ServeError | null;
  /** The latest replacement of its spec, while that goes on; else null. */
  replacing: Promise<unknown> | null;
}

/** The registry as calls and pages see it: only its server registers, changes and removes models. */
export type Models = Pick<
  Registry,
  'default' | 'all' | 'isDefault' | 'find' | 'leaving' | 'describe' | 'setDefault'
>;

export class Registry {
  /** The versions of each name, of which one is the default. */
  readonly #names = new Map<string, Entry[]>();
  readonly #leaving = new Set<Entry>();
  readonly #leaveLimitMs: number;
  #defaultName: string | null = null;
  #isClosed = false;

  /** `leaveLimitMs`: longest time that a registration waits for a model of the same name and version that is leaving. */
  constructor(leaveLimitMs = 0) {
    this.#leaveLimitMs = leaveLimitMs;
  }

  /** The model that answers on `/`; null if there is none. */
  get default(): Model | null {
    return this.#defaultName === null ? null : (this.#known({ name: this.#defaultName })?.model ?? null);
  }

  /** The models that callers can find, in the order in which their names were registered. */
  *all(): Generator<Model> {
    for (const entries of this.#names.values()) for (const { model } of entries) yield model;
  }

  /** Whether calls that name no version get this one. */
  isDefault({ name, version }: FullModelRef): boolean {
    return this.#known({ name })?.model.spec.version === version;
  }

  /** @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND; SERVE_NOT_READY if it is leaving and refuses its calls */
  find(ref: ModelRef): Model {
    const entry = this.#known(ref);
    if (entry !== undefined) return entry.model;
    throw this.#refusing(ref)?.refusal ?? this.#unknown(ref);
  }

  /** Finds the model if it is leaving and refuses its calls; else null. */
  leaving(ref: ModelRef): Model | null {
    return this.#refusing(ref)?.model ?? null;
  }

  /** Finds a registered model, to change it: unlike `find`, not one that is leaving. @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND */
  registered(ref: ModelRef): ManagedModel {
    return this.#entry(ref).model;
  }

  /** All models; those that are leaving come last. */
  describe(): Registered[] {
    const entries = [...[...this.#names.values()].flat(), ...this.#leaving];
    return entries.map(({ model, isFirst, isDefault, asked, left }) => {
      const bounds = model.sizing.bounds ?? asked ?? exactly(model.crew.wanted);
      return { model, isFirst, isDefault, isLeaving: left !== null, bounds };
    });
  }

  /** Describes one model; undefined if it is neither registered nor leaving. */
  described(model: Model): Registered | undefined {
    return this.describe().find((registered) => registered.model === model);
  }

  /** Adds one of the models that a server starts with. `isDefault`: it answers on `/`. @throws SERVE_MODEL_CONFLICT */
  addFirst(model: ManagedModel, isDefault: boolean, bounds: WorkerBounds | null = null): void {
    if (isDefault) this.#defaultName = model.spec.name;
    this.#add(model, true, bounds);
  }

  /**
   * Adds a model, which has no workers until it is scaled. The first version of a name is its default. Waits for a model of
   * the same name and version that is leaving, up to the limit given to the constructor.
   * @throws SERVE_MODEL_CONFLICT, SERVE_SHUTTING_DOWN
   */
  async register(ref: FullModelRef, make: () => ManagedModel): Promise<ManagedModel> {
    const before = [...this.#leaving].find(({ model }) => isMeant(model, ref));
    const isGone = (await within<unknown>(this.#leaveLimitMs, before?.left ?? GONE)) !== null;
    if (this.#isClosed) throw shuttingDown();
    if (!isGone) throw stillLeaving(ref);
    this.#refuseTwice(ref);
    const model = make();
    this.#add(model, false, null);
    return model;
  }

  /** Calls that name no version get this one from now on, and jobs that wait. @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND */
  setDefault(ref: FullModelRef): void {
    const chosen = this.#entry(ref);
    for (const entry of this.#names.get(ref.name) ?? []) entry.isDefault = entry === chosen;
    chosen.model.takeJobs();
  }

  /** @throws SERVE_CONFIG, SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND */
  scale(ref: ModelRef, bounds: WorkerBounds, limits: RetireLimits): Accepted {
    checkBounds(bounds);
    const entry = this.#entry(ref);
    const { model } = entry;
    entry.asked = bounds;
    const count = countWithin(bounds, model.crew.running);
    return { accepted: refOf(model), settled: outcomeOrFailure(count, () => model.scale(bounds, limits)) };
  }

  /**
   * Replaces the spec of the model, after an earlier replacement has ended. With an error, the previous spec stays in force,
   * at least for some workers, and the result is `failed`. @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND
   */
  replace(ref: ModelRef, change: (model: ManagedModel) => Promise<Outcome>): Accepted {
    const entry = this.#entry(ref);
    const { model } = entry;
    const run = async (): Promise<Outcome> => {
      if (entry.left !== null) return gone(model);
      const outcome = await outcomeOrFailure(model.crew.wanted, () => change(model));
      return outcome.error === null ? outcome : { ...outcome, result: 'failed' };
    };
    const settled = entry.replacing === null ? run() : entry.replacing.then(run);
    entry.replacing = settled;
    void settled.then(() => {
      if (entry.replacing === settled) entry.replacing = null;
    });
    return { accepted: refOf(model), settled };
  }

  /**
   * New calls do not find the model any more; accepted calls end before its workers stop, as far as `limits` allow.
   * @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND; SERVE_MODEL_CONFLICT for the default one of several versions
   */
  unregister(ref: ModelRef, limits: RetireLimits): Accepted {
    return this.#unregister(this.#entry(ref), limits, null);
  }

  /**
   * Unregisters the model and refuses new calls, and calls that have not begun, at once with SERVE_NOT_READY. If the model
   * is leaving already, returns its end once more.
   */
  unregisterAtOnce(ref: ModelRef, limits: RetireLimits): Accepted {
    const leaving = this.#known(ref) === undefined ? this.#refusing(ref) : undefined;
    if (leaving !== undefined)
      return { accepted: refOf(leaving.model), settled: leaving.left as Promise<Outcome> };
    const entry = this.#entry(ref);
    return this.#unregister(entry, limits, unloading(entry.model.spec));
  }

  #unregister(entry: Entry, limits: RetireLimits, refusal: ServeError | null): Accepted {
    const { name, version } = refOf(entry.model);
    const others = this.#names.get(name)?.filter((other) => other !== entry) ?? [];
    if (entry.isDefault && others.length > 0) {
      const message = `Version ${version} is the default version of the model ${name}, which has other versions; make one of them the default first.`;
      throw new ServeError('SERVE_MODEL_CONFLICT', message);
    }
    if (others.length === 0) this.#names.delete(name);
    else this.#names.set(name, others);
    this.#leaving.add(entry);
    entry.isDefault = false;
    entry.refusal = refusal;
    if (refusal !== null) entry.model.rejectCalls(refusal);
    const settled = this.#leave(entry, limits);
    entry.left = settled;
    return { accepted: { name, version }, settled };
  }

  /** Refuses registrations from now on. */
  close(): void {
    this.#isClosed = true;
  }

  async #leave(entry: Entry, limits: RetireLimits): Promise<Outcome> {
    const outcome = await outcomeOrFailure(0, () => entry.model.scale(exactly(0), limits));
    if (outcome.result === 'done') {
      this.#leaving.delete(entry);
      entry.model.close(0);
    }
    return outcome; // if not done, the server drains, which ends this model with the others
  }

  #add(model: ManagedModel, isFirst: boolean, asked: WorkerBounds | null): void {
    this.#refuseTwice(model.spec);
    const { name } = model.spec;
    const others = this.#names.get(name) ?? [];
    const isDefault = others.length === 0;
    const entry = { model, isFirst, isDefault, asked, left: null, refusal: null, replacing: null };
    this.#names.set(name, [...others, entry]);
  }

  #refuseTwice(ref: FullModelRef): void {
    if (this.#known(ref) === undefined) return;
    throw new ServeError('SERVE_MODEL_CONFLICT', `Model ${ref.name} is already registered.`);
  }

  #entry(ref: ModelRef): Entry {
    const entry = this.#known(ref);
    if (entry === undefined) throw this.#unknown(ref);
    return entry;
  }

  #known(ref: ModelRef): Entry | undefined {
    for (const entry of this.#names.get(ref.name) ?? [])
      if (ref.version === undefined ? entry.isDefault : isMeant(entry.model, ref)) return entry;
    return undefined;
  }

  #refusing(ref: ModelRef): Entry | undefined {
    return [...this.#leaving].find(({ model, refusal }) => refusal !== null && isMeant(model, ref));
  }

  #unknown(ref: ModelRef): ServeError {
    const versions = this.#names.get(ref.name)?.map(({ model }) => model.spec.version);
    return versions === undefined ? noModel(ref.name, [...this.#names.keys()]) : noVersion(ref, versions);
  }
}

/** The outcome of a replacement whose model was unregistered before it began. */
function gone(model: Model): Outcome {
  const message = `The model ${labelOf(model.spec)} was unregistered in the meantime.`;
  return { result: 'failed', wanted: 0, ready: 0, error: new ServeError('SERVE_MODEL_NOT_FOUND', message) };
}

function refOf({ spec: { name, version } }: Model): FullModelRef {
  return { name, version };
}

function isMeant({ spec }: Model, { name, version = spec.version }: ModelRef): boolean {
  return spec.name === name && spec.version === version;
}

/** Already settled: no earlier model has to end first. */
const GONE: Promise<unknown> = Promise.resolve(true);

/** `names`: the models of this server. */
function noModel(name: string, names: readonly string[]): ServeError {
  return new ServeError(
    'SERVE_MODEL_NOT_FOUND',
    `There is no model ${quoted(name)}; this server has ${listed(names)}.`,
  );
}

/** `versions`: the versions of the model. */
function noVersion({ name, version = '' }: ModelRef, versions: readonly string[]): ServeError {
  const message = `The model ${name} has no version ${quoted(version)}; it has: ${versions.join(', ')}.`;
  return new ServeError('SERVE_VERSION_NOT_FOUND', message);
}

/** The error of calls to a model that is being unregistered. */
function unloading(ref: FullModelRef): ServeError {
  const message = `The model ${labelOf(ref)} is being unregistered.`;
  return new ServeError('SERVE_NOT_READY', message, { retryAfterS: UNLOADING_RETRY_S });
}

/** The error of a registration whose wait for the model of the same name and version took too long. */
function stillLeaving(ref: FullModelRef): ServeError {
  const message = `The model ${labelOf(ref)} is being unregistered and its last workers have not ended yet; register it again later.`;
  return new ServeError('SERVE_MODEL_CONFLICT', message);
}

/** The model may be registered again at an unknown time. */
const UNLOADING_RETRY_S = 30;

/** Lists as many names as fit into a message. */
function listed(names: readonly string[]): string {
  if (names.length === 0) return 'none';
  const more = names.length - MOST_NAMES;
  return `${names.slice(0, MOST_NAMES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

const MOST_NAMES = 20;

/** Quotes a name that a client sent, shortened and on one line. */
function quoted(text: string): string {
  return JSON.stringify(text.length > 128 ? `${text.slice(0, 128)}…` : text);
}
