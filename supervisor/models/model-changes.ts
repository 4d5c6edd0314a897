/** Changes of a running model: another number of workers, another spec. */
import { ServeError, shuttingDown } from '../../protocol/errors.js';
import type { RetireLimits } from '../processes/worker-listener.js';
import { startError } from '../slots/start-error.js';
import { needsNewWorkers } from './generations.js';
import type { ModelParts } from './model-parts.js';
import type { ModelSpec } from './model-spec.js';
import type { OptionsApplier } from './options-applier.js';
import { outcomeOf, type Outcome } from './outcome.js';
import { untilQuiet } from './quiet.js';
import { rollingReplace } from './rolling-replace.js';
import type { Placement } from '../machine/placement.js';
import type { Scaler } from './scaler.js';
import { isBetween, isSettled } from './slot-summary.js';
import type { Standbys } from './standbys.js';
import { boundsFor, countWithin, type WorkerBounds } from './bounds.js';

export class ModelChanges {
  readonly #model: ModelParts;
  readonly #applier: OptionsApplier;
  readonly #scaler: Scaler;
  readonly #standbys: Standbys;
  #replacements = 0;
  /** The bounds that the options in force say; null: the model does not scale by itself. */
  #own: WorkerBounds | null = null;
  /** Number of the latest `scale`, which overtakes the earlier ones. */
  #latestScale = 0;
  /** When the last workers are retired, on the monotonic clock; Infinity while some are wanted. */
  #emptyAtMs = Infinity;

  constructor(model: ModelParts, applier: OptionsApplier, scaler: Scaler, standbys: Standbys) {
    this.#model = model;
    this.#applier = applier;
    this.#scaler = scaler;
    this.#standbys = standbys;
  }

  /** Whether workers are being replaced. */
  get isReplacing(): boolean {
    const { generations, slots } = this.#model;
    return this.#replacements > 0 || generations.isUntried || slots.kept.some(isBetween);
  }

  /** See `Model.start`. */
  start(placements: readonly Placement[]): void {
    const { slots, health } = this.#model;
    const own = this.#scaler.findOwnBounds();
    const count = slots.kept.length + placements.length;
    health.want(count, count > 0 || own !== null);
    slots.add(placements);
    this.#own = own;
    this.#scaler.follow(own);
  }

  /** See `Model.scale`. */
  scale(bounds: WorkerBounds, limits: RetireLimits): Promise<Outcome> {
    const { generations, slots, health, resources } = this.#model;
    if (health.isDraining) throw shuttingDown();
    const count = countWithin(bounds, this.#model.runningWorkers());
    const missing = count - slots.kept.length;
    const own = this.#scaler.findOwnBounds();
    const more = resources.devices.take(generations.newest.spec.resolved.options, missing);
    this.#own = own;
    const takesCalls = count > 0 || (this.#own !== null && bounds.max > 0);
    health.want(count, takesCalls);
    this.#latestScale += 1;
    if (missing <= 0) slots.hurry(limits);
    if (!takesCalls) void this.#retireAll(limits, this.#latestScale);
    else {
      this.#emptyAtMs = Infinity;
      slots.retire(slots.kept.length - count - this.#standbys.most(count), limits);
      for (const slot of slots.kept) slot.startAgain();
      slots.add(more);
      this.#standbys.keep();
    }
    this.#applier.applyQueueLimits(); // also lets one that stood by take what waits
    this.#scaler.follow(this.#own === null ? null : bounds);
    return health.whenSettled();
  }

  /** See `Model.startAgain`. */
  startAgain(): void {
    const { health, slots } = this.#model;
    if (!health.isDraining) for (const slot of slots.kept) slot.startAgain();
  }

  /** See `Model.replace`. */
  async replace(spec: ModelSpec, limits: RetireLimits): Promise<Outcome> {
    const outcome = await this.#replace(spec, limits);
    this.#followOptions(limits);
    return outcome;
  }

  async #replace(spec: ModelSpec, limits: RetireLimits): Promise<Outcome> {
    const { generations, slots, health } = this.#model;
    if (health.isDraining) throw shuttingDown();
    if (!generations.isUntried && !needsNewWorkers(generations.newest.spec, spec)) {
      generations.change(spec, slots.workers);
      this.#applier.applyLimits();
      this.#followOptions(limits);
      return health.whenSettled();
    }
    return this.renew(spec, limits);
  }

  /** See `Model.renew`. */
  async renew(spec: ModelSpec, limits: RetireLimits): Promise<Outcome> {
    const { generations, slots, health, log } = this.#model;
    if (health.isDraining) throw shuttingDown();
    if (slots.ready.length === 0) {
      this.replaceAtOnce(spec, limits); // no worker serves meanwhile
      return health.whenSettled();
    }
    generations.begin(spec);
    this.#replacements += 1;
    const error = await rollingReplace(this.#model, limits);
    this.#replacements -= 1;
    if (error !== null) log.replacingFailed(error);
    const outcome = await health.whenSettled();
    return { ...outcome, error: error ?? outcome.error };
  }

  /** See `Model.restartWorker`. */
  async restartWorker(index: number, limits: RetireLimits): Promise<Outcome> {
    const { slots, health, log } = this.#model;
    if (health.isDraining) throw shuttingDown();
    const slot = slots.kept.find((one) => one.index === index);
    if (slot === undefined) throw noWorker(index);
    log.restarting(index);
    const before = slot.worker;
    slot.renew(limits);
    await health.until(() => !slot.isKept || isSettled(slot) || health.isDraining);
    if (health.isDraining) throw shuttingDown();
    if (!slot.isKept) throw noWorker(index);
    if (slot.worker !== before && slot.worker?.state === 'ready') return outcomeOf(1, 1, null);
    return outcomeOf(1, 0, slot.failure ?? (slot.lastDeath === null ? null : startError(slot.lastDeath)));
  }

  /** See `Model.replaceAtOnce`. */
  replaceAtOnce(spec: ModelSpec, limits: RetireLimits): void {
    const { generations, slots, health, log } = this.#model;
    if (health.isDraining) return;
    health.forgetServing();
    log.forgetErrors();
    generations.beginAtOnce(spec);
    this.#applier.applyQueueLimits();
    for (const slot of slots.standbys) slot.retire(limits); // they come again once the new code is ready
    for (const slot of slots.all) slot.replace(limits);
    if (health.takesCalls && slots.kept.length === 0) this.#scaler.grow(1, { rule: 'change' });
  }

  /** Scales within the bounds of the newest options, if they have others than those before. */
  #followOptions(limits: RetireLimits): void {
    const { health, resources, generations } = this.#model;
    if (health.isDraining || !health.takesCalls) return;
    const before = this.#own;
    const own = this.#scaler.findOwnBounds();
    if (own?.min === before?.min && own?.max === before?.max) {
      this.#standbys.keep();
      this.#scaler.ask(); // other rules may have changed
      return;
    }
    const usualCount = (): number => resources.devices.firstCount(generations.newest.spec.resolved.options);
    void this.scale(boundsFor('options', { own, set: null, usualCount }), limits);
  }

  /**
   * Retires the last workers once the accepted calls have ended, or their time is over. If this is asked again meanwhile,
   * the earlier end counts.
   */
  async #retireAll({ finishMs, graceMs }: RetireLimits, scale: number): Promise<void> {
    const { slots, health, isQuiet } = this.#model;
    const endAtMs = Math.min(this.#emptyAtMs, performance.now() + finishMs);
    this.#emptyAtMs = endAtMs;
    const isOvertaken = (): boolean => this.#latestScale !== scale || health.isDraining;
    await untilQuiet(() => isQuiet() || isOvertaken(), endAtMs);
    if (isOvertaken()) return;
    const leftMs = Math.max(0, endAtMs - performance.now());
    slots.retire(slots.kept.length, { finishMs: leftMs, graceMs });
  }
}

export function noWorker(index: number): ServeError {
  return new ServeError('SERVE_NOT_FOUND', `The model has no worker ${index}.`);
}
