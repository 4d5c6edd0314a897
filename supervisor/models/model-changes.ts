/** What may be asked of a model while it runs: another number of workers, another spec. */
import { shuttingDown } from '../../protocol/errors.js';
import type { Devices } from '../machine/devices.js';
import type { RetireLimits } from '../processes/worker-listener.js';
import { needsNewWorkers } from './generations.js';
import type { Settled } from './model-health.js';
import type { ModelLog } from './model-log.js';
import type { ModelSpec } from './model-spec.js';
import { untilQuiet } from './quiet.js';
import { rollingReplace, type Rolled } from './rolling-replace.js';

export interface ChangedModel extends Rolled {
  readonly devices: Pick<Devices, 'take'>;
  readonly log: Pick<ModelLog, 'forgetErrors' | 'replacingFailed'>;
  /** Nothing is waiting, arriving or running. */
  isQuiet(): boolean;
  /** Other limits hold for the queue. */
  limitQueue(): void;
  /** Other limits hold for the queue and for the workers that there are. */
  limitAll(): void;
}

export class ModelChanges {
  readonly #model: ChangedModel;
  /** Counts what was asked about the number of workers: the last word is the one that holds. */
  #asked = 0;
  /** When the last workers go, on the monotonic clock; Infinity while some are wanted. */
  #emptyAtMs = Infinity;

  constructor(model: ChangedModel) {
    this.#model = model;
  }

  /** See `Model.scale`. */
  scale(count: number, limits: RetireLimits): Promise<Settled> {
    const { devices, generations, slots, health } = this.#model;
    if (health.isDraining) throw shuttingDown();
    const missing = count - slots.kept.length;
    const more = devices.take(generations.newest.spec.resolved.options, missing);
    health.want(count);
    this.#asked += 1;
    if (missing <= 0) slots.hurry(limits);
    if (count === 0) void this.#retireAll(limits, this.#asked);
    else {
      this.#emptyAtMs = Infinity;
      slots.retire(slots.kept.length - count, limits);
      for (const slot of slots.kept) if (slot.state.name === 'latched') slot.replace(limits);
      slots.add(more);
    }
    this.#model.limitQueue();
    return health.whenSettled();
  }

  /** See `Model.replace`. */
  async replace(spec: ModelSpec, limits: RetireLimits): Promise<Settled> {
    const { generations, slots, health, log } = this.#model;
    if (health.isDraining) throw shuttingDown();
    if (!generations.isUntried && !needsNewWorkers(generations.newest.spec, spec)) {
      generations.change(spec, slots.workers);
      this.#model.limitAll();
      return health.whenSettled();
    }
    if (slots.ready.length === 0) {
      this.replaceAtOnce(spec, limits); // nobody goes on meanwhile
      return health.whenSettled();
    }
    generations.begin(spec);
    const error = await rollingReplace(this.#model, limits);
    if (error !== null) log.replacingFailed(error);
    const settled = await health.whenSettled();
    return { ...settled, error: error ?? settled.error };
  }

  /** See `Model.replaceAtOnce`. */
  replaceAtOnce(spec: ModelSpec, limits: RetireLimits): void {
    const { generations, slots, health, log } = this.#model;
    if (health.isDraining) return;
    health.forgetServing();
    log.forgetErrors();
    generations.beginAtOnce(spec);
    this.#model.limitQueue();
    for (const slot of slots.all) slot.replace(limits);
  }

  /**
   * Its last workers go when the calls that were taken have ended, or the time for that is over. Asked again meanwhile,
   * the earlier end counts.
   */
  async #retireAll({ finishMs, graceMs }: RetireLimits, asked: number): Promise<void> {
    const { slots, health, isQuiet } = this.#model;
    const endAtMs = Math.min(this.#emptyAtMs, performance.now() + finishMs);
    this.#emptyAtMs = endAtMs;
    const isOvertaken = (): boolean => this.#asked !== asked || health.isDraining;
    await untilQuiet(() => isQuiet() || isOvertaken(), endAtMs);
    if (isOvertaken()) return;
    const leftMs = Math.max(0, endAtMs - performance.now());
    slots.retire(slots.kept.length, { finishMs: leftMs, graceMs });
  }
}
