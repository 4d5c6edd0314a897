/**
 * The devices of this machine, one of these per server: each slot of each model asks here for its place and gives it
 * back, so that models share GPUs and cores without knowing each other.
 */
import {
  placeOne,
  placeWorkers,
  threadShare,
  type DeviceWish,
  type Machine,
  type Placement,
} from './placement.js';

export class Devices {
  readonly #machine: Machine;
  /** The places of all slots that there are. */
  readonly #taken = new Set<Placement>();

  constructor(machine: Machine) {
    this.#machine = machine;
  }

  /** Takes the places of the slots that a model starts with. @throws SERVE_CONFIG if its options do not fit the machine */
  takeFirst(wish: DeviceWish): Placement[] {
    const placements = placeWorkers({ ...this.#machine, ...wish });
    for (const placement of placements) this.#taken.add(placement);
    return placements;
  }

  /** How many slots a model would start with. @throws SERVE_CONFIG if its options do not fit the machine */
  firstCount(wish: DeviceWish): number {
    return placeWorkers({ ...this.#machine, ...wish }).length;
  }

  /**
   * Takes the places of so many slots more: on those of the model's GPUs where the fewest slots of all models are, or
   * on the CPU. @throws SERVE_CONFIG if its options do not fit the machine; then none is taken
   */
  take(wish: DeviceWish, count: number): Placement[] {
    return Array.from({ length: count }, () => {
      const placement = placeOne({ ...this.#machine, ...wish }, (device) => this.#slotsOn(device));
      this.#taken.add(placement);
      return placement;
    });
  }

  giveBack(placement: Placement): void {
    this.#taken.delete(placement);
  }

  /** How many slots there are, over all models. */
  get slots(): number {
    return this.#taken.size;
  }

  /** Threads for a worker that starts now: the cores, shared by the slots that there are. */
  get threads(): number {
    return threadShare(this.#machine.cores, Math.max(1, this.#taken.size));
  }

  #slotsOn(device: string): number {
    return [...this.#taken].filter((placement) => placement.device === device).length;
  }
}
