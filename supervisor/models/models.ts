/**
 * The models of a server: name -> versions -> model. Every call looks its model up here; operators change it meanwhile.
 *
 * Changes of one model take effect at once, in the order in which they are asked for; `accepted` names the version. Workers
 * that start or end their calls take time: `settled` resolves when they have. A model that was unregistered is not found
 * any more; it is described until it is unloaded, and a new one of the same name and version waits for that.
 */
import { ServeError, shuttingDown } from '../../protocol/errors.js';
import { within } from '../machine/within.js';
import type { RetireLimits } from '../processes/worker-listener.js';
import { labelOf, type FullModelRef, type ModelRef } from '../options/model-name.js';
import type { CrewView } from './crew.js';
import type { Model } from './model.js';
import { noModel, noVersion, stillLeaving, unloading } from './model-errors.js';
import { outcomeOrFailure, type Outcome } from './outcome.js';
import type { SizingView } from './sizing.js';
import { checkBounds, exactly, countWithin, type WorkerBounds } from './bounds.js';

export type { FullModelRef, ModelRef } from '../options/model-name.js';
export type { Outcome } from './outcome.js';
export type { WorkerBounds } from './bounds.js';

/** A change that has taken effect; its workers may still be starting or stopping. */
export interface Accepted {
  readonly accepted: FullModelRef;
  /** Never rejects. */
  readonly settled: Promise<Outcome>;
}

/** The members of a model that the registry uses. */
export interface ManagedModel extends Pick<Model, 'scale' | 'rejectCalls' | 'close'> {
  readonly spec: FullModelRef;
  readonly crew: Pick<CrewView, 'wanted' | 'running'>;
  readonly sizing: Pick<SizingView, 'bounds'>;
}

export interface Registered<M> {
  readonly model: M;
  /** Whether the server started with it. */
  readonly isFirst: boolean;
  /** Whether calls that name no version get this one. */
  readonly isDefault: boolean;
  /** Whether it was unregistered and ends its last calls. */
  readonly isLeaving: boolean;
  /** The bounds within which it scales itself, else as last asked for, else the number of workers that are wanted now. */
  readonly bounds: WorkerBounds;
}

interface Entry<M> {
  readonly model: M;
  readonly isFirst: boolean;
  bounds: WorkerBounds | null;
  /** Its unregistration; null while it is registered. */
  leaving: Leaving | null;
  /** The latest replacement of its spec, while that goes on; else null. */
  replacing: Promise<unknown> | null;
}

interface Leaving {
  /** Settles once it is unloaded. */
  readonly settled: Promise<Outcome>;
  /** The error of calls to it; null: that there is no such model. */
  readonly refusal: ServeError | null;
}

interface Versions<M> {
  readonly entries: Map<string, Entry<M>>;
  default: Entry<M>;
}

export class Models<M extends ManagedModel = Model> {
  readonly #names = new Map<string, Versions<M>>();
  readonly #leaving = new Set<Entry<M>>();
  readonly #leaveLimitMs: number;
  #defaultName: string | null = null;
  #isClosed = false;

  /** `leaveLimitMs`: longest time that a registration waits for a model of the same name and version that is leaving. */
  constructor(leaveLimitMs = 0) {
    this.#leaveLimitMs = leaveLimitMs;
  }

  /** The model that answers on `/`; null if there is none. */
  get default(): M | null {
    return this.#defaultName === null ? null : (this.#names.get(this.#defaultName)?.default.model ?? null);
  }

  /** Number of models, including those that are leaving. */
  get count(): number {
    let count = this.#leaving.size;
    for (const { entries } of this.#names.values()) count += entries.size;
    return count;
  }

  /** The models that callers can find, in the order in which their names were registered. */
  *all(): Generator<M> {
    for (const { entries } of this.#names.values()) for (const { model } of entries.values()) yield model;
  }

  /** Whether calls that name no version get this one. */
  isDefault({ name, version }: FullModelRef): boolean {
    return this.#names.get(name)?.default.model.spec.version === version;
  }

  /** @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND; SERVE_NOT_READY if it is leaving and refuses its calls */
  find(ref: ModelRef): M {
    const entry = this.#known(ref);
    if (entry !== null) return entry.model;
    throw this.#refusing(ref)?.leaving?.refusal ?? this.#unknown(ref);
  }

  /** Finds the model if it is leaving and refuses its calls; else null. */
  leaving(ref: ModelRef): M | null {
    return this.#refusing(ref)?.model ?? null;
  }

  /** Finds a registered model, to change it: unlike `find`, not one that is leaving. @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND */
  registered(ref: ModelRef): M {
    return this.#entry(ref).model;
  }

  /** All models; those that are leaving come last. */
  describe(): Registered<M>[] {
    const registered = [...this.#names.values()].flatMap((versions) =>
      [...versions.entries.values()].map((entry) => ({ entry, isDefault: versions.default === entry })),
    );
    const leaving = [...this.#leaving].map((entry) => ({ entry, isDefault: false }));
    return [...registered, ...leaving].map(({ entry: { model, isFirst, leaving, ...entry }, isDefault }) => {
      const bounds = model.sizing.bounds ?? entry.bounds ?? exactly(model.crew.wanted);
      return { model, isFirst, isDefault, isLeaving: leaving !== null, bounds };
    });
  }

  /** Describes one model; undefined if it is neither registered nor leaving. */
  described(model: M): Registered<M> | undefined {
    return this.describe().find((registered) => registered.model === model);
  }

  /** Adds one of the models that a server starts with. `isDefault`: it answers on `/`. @throws SERVE_MODEL_CONFLICT */
  addFirst(model: M, isDefault: boolean, bounds: WorkerBounds | null = null): void {
    if (isDefault) this.#defaultName = model.spec.name;
    this.#add(model, true, bounds);
  }

  /**
   * Adds a model, which has no workers until it is scaled. The first version of a name is its default. Waits for a model of
   * the same name and version that is leaving, up to the limit given to the constructor.
   * @throws SERVE_MODEL_CONFLICT, SERVE_SHUTTING_DOWN
   */
  async register(ref: FullModelRef, make: () => M): Promise<M> {
    const before = [...this.#leaving].find(({ model }) => isSame(model.spec, ref));
    const end = before?.leaving?.settled ?? GONE;
    const isGone = (await within<unknown>(this.#leaveLimitMs, end)) !== null;
    if (this.#isClosed) throw shuttingDown();
    if (!isGone) throw stillLeaving(ref);
    this.#refuseTwice(ref);
    const model = make();
    this.#add(model, false, null);
    return model;
  }

  /** Calls that name no version get this one from now on. @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND */
  setDefault(ref: FullModelRef): void {
    const entry = this.#entry(ref);
    (this.#names.get(ref.name) as Versions<M>).default = entry;
  }

  /** @throws SERVE_CONFIG, SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND */
  scale(ref: ModelRef, bounds: WorkerBounds, limits: RetireLimits): Accepted {
    checkBounds(bounds);
    const entry = this.#entry(ref);
    const { model } = entry;
    entry.bounds = bounds;
    const count = countWithin(bounds, model.crew.running);
    return { accepted: refOf(model), settled: outcomeOrFailure(count, () => model.scale(bounds, limits)) };
  }

  /**
   * Replaces the spec of the model, after an earlier replacement has ended. With an error, the previous spec stays in force,
   * at least for some workers, and the result is `failed`. @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND
   */
  replace(ref: ModelRef, change: (model: M) => Promise<Outcome>): Accepted {
    const entry = this.#entry(ref);
    const run = async (): Promise<Outcome> => {
      if (entry.leaving !== null) return gone(entry.model);
      const outcome = await outcomeOrFailure(entry.model.crew.wanted, () => change(entry.model));
      return outcome.error === null ? outcome : { ...outcome, result: 'failed' };
    };
    const settled = entry.replacing === null ? run() : entry.replacing.then(run);
    entry.replacing = settled;
    void settled.then(() => {
      if (entry.replacing === settled) entry.replacing = null;
    });
    return { accepted: refOf(entry.model), settled };
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
    const leaving = this.#known(ref) === null ? this.#refusing(ref) : null;
    if (leaving !== null)
      return { accepted: refOf(leaving.model), settled: (leaving.leaving as Leaving).settled };
    const entry = this.#entry(ref);
    return this.#unregister(entry, limits, unloading(entry.model.spec));
  }

  #unregister(entry: Entry<M>, limits: RetireLimits, refusal: ServeError | null): Accepted {
    const { name, version } = refOf(entry.model);
    const versions = this.#names.get(name) as Versions<M>;
    if (versions.default === entry && versions.entries.size > 1) {
      const message = `Version ${version} is the default version of the model ${name}, which has other versions; make one of them the default first.`;
      throw new ServeError('SERVE_MODEL_CONFLICT', message);
    }
    versions.entries.delete(version);
    if (versions.entries.size === 0) this.#names.delete(name);
    this.#leaving.add(entry);
    if (refusal !== null) entry.model.rejectCalls(refusal);
    const settled = this.#leave(entry, limits);
    entry.leaving = { settled, refusal };
    return { accepted: { name, version }, settled };
  }

  /** Refuses registrations from now on. */
  close(): void {
    this.#isClosed = true;
  }

  async #leave(entry: Entry<M>, limits: RetireLimits): Promise<Outcome> {
    const outcome = await outcomeOrFailure(0, () => entry.model.scale(exactly(0), limits));
    if (outcome.result === 'done') {
      this.#leaving.delete(entry);
      entry.model.close(0);
    }
    return outcome; // if not done, the server drains, which ends this model with the others
  }

  #add(model: M, isFirst: boolean, bounds: WorkerBounds | null): void {
    this.#refuseTwice(model.spec);
    const { name, version } = model.spec;
    const entry: Entry<M> = { model, isFirst, bounds, leaving: null, replacing: null };
    const versions = this.#names.get(name);
    if (versions === undefined)
      this.#names.set(name, { entries: new Map([[version, entry]]), default: entry });
    else versions.entries.set(version, entry);
  }

  #refuseTwice(ref: FullModelRef): void {
    if (this.#names.get(ref.name)?.entries.has(ref.version) !== true) return;
    throw new ServeError('SERVE_MODEL_CONFLICT', `Model ${ref.name} is already registered.`);
  }

  #entry(ref: ModelRef): Entry<M> {
    const entry = this.#known(ref);
    if (entry === null) throw this.#unknown(ref);
    return entry;
  }

  #known({ name, version }: ModelRef): Entry<M> | null {
    const versions = this.#names.get(name);
    return (version === undefined ? versions?.default : versions?.entries.get(version)) ?? null;
  }

  #refusing({ name, version }: ModelRef): Entry<M> | null {
    const isMeant = ({ model: { spec }, leaving }: Entry<M>): boolean =>
      (leaving?.refusal ?? null) !== null && spec.name === name && (version ?? spec.version) === spec.version;
    return [...this.#leaving].find(isMeant) ?? null;
  }

  #unknown(ref: ModelRef): ServeError {
    const versions = this.#names.get(ref.name);
    return versions === undefined
      ? noModel(ref.name, [...this.#names.keys()])
      : noVersion(ref, [...versions.entries.keys()]);
  }
}

/** The outcome of a replacement whose model was unregistered before it began. */
function gone(model: ManagedModel): Outcome {
  const message = `The model ${labelOf(model.spec)} was unregistered in the meantime.`;
  return { result: 'failed', wanted: 0, ready: 0, error: new ServeError('SERVE_MODEL_NOT_FOUND', message) };
}

function refOf({ spec: { name, version } }: ManagedModel): FullModelRef {
  return { name, version };
}

function isSame(a: FullModelRef, b: FullModelRef): boolean {
  return a.name === b.name && a.version === b.version;
}

/** Already settled: no earlier model has to end first. */
const GONE: Promise<unknown> = Promise.resolve(true);
