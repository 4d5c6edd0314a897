/**
 * The slots of one model, which are added and removed while it runs, and their workers.
 * Before: the model decides how many. After: each slot starts its workers and handles their deaths.
 */
import type { Devices } from '../machine/devices.js';
import type { Placement } from '../machine/placement.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import type { RetireLimits } from '../processes/worker-listener.js';
import type { Slot } from '../slots/slot.js';

export type MakeSlot = (index: number, placement: Placement) => Slot;

interface PlacedSlot {
  readonly slot: Slot;
  readonly placement: Placement;
}

export class SlotSet {
  readonly #devices: Pick<Devices, 'giveBack'>;
  readonly #mayServe: (worker: WorkerHandle) => boolean;
  readonly #make: MakeSlot;
  /** In the order of their indices. */
  #placed: PlacedSlot[] = [];
  #slots: readonly Slot[] = [];
  #callable: readonly WorkerHandle[] = [];
  #ready: readonly WorkerHandle[] = [];

  /** `mayServe` decides whether a ready worker may be given calls. */
  constructor(
    devices: Pick<Devices, 'giveBack'>,
    mayServe: (worker: WorkerHandle) => boolean,
    make: MakeSlot,
  ) {
    this.#devices = devices;
    this.#mayServe = mayServe;
    this.#make = make;
  }

  /** In the order of their indices, including those that are being retired. */
  get all(): readonly Slot[] {
    return this.#slots;
  }

  /** The slots that are not being retired. */
  get kept(): Slot[] {
    return this.#slots.filter(({ isKept }) => isKept);
  }

  /** Workers that may be given calls: the ready ones, and those that are frozen. */
  get callable(): readonly WorkerHandle[] {
    return this.#callable;
  }

  /** Workers that would begin a call at once, or after those that they hold. */
  get ready(): readonly WorkerHandle[] {
    return this.#ready;
  }

  /** Every worker process, in any state. */
  get workers(): WorkerHandle[] {
    return this.#slots.flatMap(({ workers }) => workers);
  }

  /** Updates `callable` and `ready`; called when a worker's state may have changed. */
  refresh(): void {
    this.#callable = this.workers.filter((worker) => worker.state === 'ready' && this.#mayServe(worker));
    this.#ready = this.#callable.filter(({ isFrozen }) => !isFrozen);
  }

  /** Adds a slot for each placement and starts its worker. Each slot gets the least index that no slot has. */
  add(placements: readonly Placement[]): Slot[] {
    const all = placements.map((placement) => {
      const added = { slot: this.#make(this.#freeIndex(), placement), placement };
      this.#set([...this.#placed, added].sort((a, b) => a.slot.index - b.slot.index));
      return added;
    });
    for (const { slot } of all) slot.start();
    return all.map(({ slot }) => slot);
  }

  /** Retires `count` slots, none if it is negative: first slots without a ready worker, then those with the highest index. */
  retire(count: number, limits: RetireLimits): void {
    const isIdle = (slot: Slot): boolean => slot.worker?.state === 'ready';
    const order = this.kept.sort((a, b) => Number(isIdle(a)) - Number(isIdle(b)) || b.index - a.index);
    for (const slot of order.slice(0, Math.max(0, count))) slot.retire(limits);
  }

  /** Shortens the time of slots that are being retired to these limits; shorter limits stay. */
  hurry(limits: RetireLimits): void {
    for (const slot of this.#slots) if (slot.state.name === 'closing') slot.retire(limits);
  }

  /** Removes a closed slot: its device is free, and its index may be used again. */
  remove(closed: Slot): void {
    for (const { slot, placement } of this.#placed) if (slot === closed) this.#devices.giveBack(placement);
    this.#set(this.#placed.filter(({ slot }) => slot !== closed));
    this.refresh();
  }

  #set(placed: PlacedSlot[]): void {
    this.#placed = placed;
    this.#slots = placed.map(({ slot }) => slot);
  }

  #freeIndex(): number {
    const used = new Set(this.#slots.map(({ index }) => index));
    let index = 0;
    while (used.has(index)) index += 1;
    return index;
  }
}
