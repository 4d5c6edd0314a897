/**
 * Keeps as many slots beyond the wanted ones as `--standby` says: their workers are loaded, and wait. They come once a worker
 * of the model is ready, so that they do not delay its first answer, and go when none is wanted.
 * Before: workers become ready, the number of wanted workers or the option changes. After: `SlotSet` decides who stands by.
 */
import type { Placement } from '../machine/placement.js';
import type { ModelParts } from './model-parts.js';

export class Standbys {
  readonly #model: ModelParts;
  /** Whether the log says that there is no device for one. */
  #isShort = false;

  constructor(model: ModelParts) {
    this.#model = model;
  }

  /** Number of slots beyond `wanted` ones. */
  most(wanted: number): number {
    return wanted === 0 ? 0 : this.#model.generations.newest.spec.resolved.options.standby;
  }

  /** Adds the slots that are missing, and retires those that are too many. */
  keep(): void {
    const { health, slots, resources, isClosed } = this.#model;
    if (
      isClosed() ||
      health.isDraining ||
      health.standstill !== null ||
      !health.takesCalls ||
      health.wanted === 0
    )
      return;
    const standing = slots.kept.length - health.wanted;
    if (standing < 0) return; // the wanted ones are being added or retired now
    const missing = this.most(health.wanted) - standing;
    if (missing < 0) slots.retire(-missing, resources.retireLimits);
    else if (slots.ready.length > 0) this.#add(missing);
  }

  /** Counts the workers that stand by and would begin a call at once. */
  countFree(): number {
    const { slots, dispatcher } = this.#model;
    return slots.standbys.filter(
      ({ worker }) =>
        worker !== null && !worker.isFrozen && slots.holders.includes(worker) && dispatcher.isFree(worker),
    ).length;
  }

  #add(count: number): void {
    const { slots, log } = this.#model;
    for (let i = 0; i < count; i += 1) {
      const placement = this.#takePlace();
      if (placement === null) return;
      for (const { index } of slots.add([placement])) log.standsBy(index);
    }
    this.#isShort = false;
  }

  /** Takes a place for one more slot; null if there is none, about which the log gets one line. */
  #takePlace(): Placement | null {
    const { slots, resources, generations, log } = this.#model;
    const { options } = generations.newest.spec.resolved;
    let why = `each GPU has as many workers as it should (--workers-per-gpu ${options.workersPerGpu ?? 1})`;
    try {
      const placement = resources.devices.takeIfFree(options);
      if (placement !== null && this.#hasMemory(placement)) return placement;
      if (placement !== null) {
        resources.devices.giveBack(placement);
        why = 'the memory budget has no room for it now';
      } else if (slots.all.length > slots.kept.length) return null; // the place of one that leaves is free soon
    } catch (error) {
      why = (error as Error).message; // the options have changed since the start, and do not fit the machine
    }
    if (!this.#isShort) log.noStandby(why);
    this.#isShort = true;
    return null;
  }

  #hasMemory({ device }: Placement): boolean {
    const { generations, resources } = this.#model;
    const { name, version } = generations.newest.spec;
    return resources.memory?.hasRoomFor(`${name}@${version}`, device) ?? true;
  }
}
