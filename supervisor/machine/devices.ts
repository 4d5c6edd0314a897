/**
 * Assigns devices to the slots of all models of one server, so that models share GPUs and cores without knowing each
 * other.
 */
import {
  findFreePlace,
  placeOne,
  placeWorkers,
  threadShare,
  type DeviceWish,
  type Machine,
  type Placement,
} from './placement.js';

export class Devices {
  readonly #machine: Machine;
  /** Placements of all current slots. */
  readonly #taken = new Set<Placement>();
  /** Number of slots beyond the wanted ones, by the slots of a model. */
  readonly #standbys = new Map<object, number>();

  constructor(machine: Machine) {
    this.#machine = machine;
  }

  /** Takes placements for the slots that a model starts with. @throws SERVE_CONFIG if its options do not fit the machine */
  takeFirst(wish: DeviceWish): Placement[] {
    const placements = placeWorkers({ ...this.#machine, ...wish });
    for (const placement of placements) this.#taken.add(placement);
    return placements;
  }

  /** Number of slots that a model would start with. @throws SERVE_CONFIG if its options do not fit the machine */
  firstCount(wish: DeviceWish): number {
    return placeWorkers({ ...this.#machine, ...wish }).length;
  }

  /**
   * Takes placements for `count` more slots: each on the model's GPU with the fewest slots of all models, or on the CPU.
   * @throws SERVE_CONFIG if its options do not fit the machine; then none is taken
   */
  take(wish: DeviceWish, count: number): Placement[] {
    return Array.from({ length: count }, () => {
      const placement = placeOne({ ...this.#machine, ...wish }, (device) => this.#slotsOn(device));
      this.#taken.add(placement);
      return placement;
    });
  }

  /** As `take`, but null if each of the model's GPUs has as many slots as it should; on the CPU there is always a place. */
  takeIfFree(wish: DeviceWish): Placement | null {
    const placement = findFreePlace({ ...this.#machine, ...wish }, (device) => this.#slotsOn(device));
    if (placement !== null) this.#taken.add(placement);
    return placement;
  }

  /** Notes how many slots of a model, of which `owner` is the set, have workers that stand by: they share no cores. */
  noteStandbys(owner: object, count: number): void {
    if (count === 0) this.#standbys.delete(owner);
    else this.#standbys.set(owner, count);
  }

  giveBack(placement: Placement): void {
    this.#taken.delete(placement);
  }

  /** Number of slots of all models. */
  get slots(): number {
    return this.#taken.size;
  }

  /** Threads for a worker that starts now: its share of the cores among all slots but those whose workers stand by. */
  get threads(): number {
    const standbys = [...this.#standbys.values()].reduce((sum, count) => sum + count, 0);
    return threadShare(this.#machine.cores, Math.max(1, this.#taken.size - standbys));
  }

  #slotsOn(device: string): number {
    return [...this.#taken].filter((placement) => placement.device === device).length;
  }
}
