/** Changes of a running model: another number of workers, another spec. */
import { shuttingDown } from '../../protocol/errors.js';
import type { RetireLimits } from '../processes/worker-listener.js';
import { needsNewWorkers } from './generations.js';
import type { ModelParts } from './model-parts.js';
import type { ModelSpec } from './model-spec.js';
import type { OptionsApplier } from './options-applier.js';
import type { Outcome } from './outcome.js';
import { untilQuiet } from './quiet.js';
import { rollingReplace } from './rolling-replace.js';
import { countWithin, type WorkerBounds } from './worker-bounds.js';

export class ModelChanges {
  readonly #model: ModelParts;
  readonly #applier: OptionsApplier;
  /** Number of the latest `scale`, which overtakes the earlier ones. */
  #latestScale = 0;
  /** When the last workers are retired, on the monotonic clock; Infinity while some are wanted. */
  #emptyAtMs = Infinity;

  constructor(model: ModelParts, applier: OptionsApplier) {
    this.#model = model;
    this.#applier = applier;
  }

  /** See `Model.scale`. */
  scale(bounds: WorkerBounds, limits: RetireLimits): Promise<Outcome> {
    const { generations, slots, health, resources } = this.#model;
    if (health.isDraining) throw shuttingDown();
    const count = countWithin(bounds, this.#model.runningWorkers());
    const missing = count - slots.kept.length;
    const more = resources.devices.take(generations.newest.spec.resolved.options, missing);
    health.want(count, count > 0);
    this.#latestScale += 1;
    if (missing <= 0) slots.hurry(limits);
    if (count === 0) void this.#retireAll(limits, this.#latestScale);
    else {
      this.#emptyAtMs = Infinity;
      slots.retire(slots.kept.length - count, limits);
      for (const slot of slots.kept) if (slot.state.name === 'latched') slot.replace(limits);
      slots.add(more);
    }
    this.#applier.applyQueueLimits();
    return health.whenSettled();
  }

  /** See `Model.replace`. */
  async replace(spec: ModelSpec, limits: RetireLimits): Promise<Outcome> {
    const { generations, slots, health } = this.#model;
    if (health.isDraining) throw shuttingDown();
    if (!generations.isUntried && !needsNewWorkers(generations.newest.spec, spec)) {
      generations.change(spec, slots.workers);
      this.#applier.applyLimits();
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
    const error = await rollingReplace(this.#model, limits);
    if (error !== null) log.replacingFailed(error);
    const outcome = await health.whenSettled();
    return { ...outcome, error: error ?? outcome.error };
  }

  /** See `Model.replaceAtOnce`. */
  replaceAtOnce(spec: ModelSpec, limits: RetireLimits): void {
    const { generations, slots, health, log } = this.#model;
    if (health.isDraining) return;
    health.forgetServing();
    log.forgetErrors();
    generations.beginAtOnce(spec);
    this.#applier.applyQueueLimits();
    for (const slot of slots.all) slot.replace(limits);
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
