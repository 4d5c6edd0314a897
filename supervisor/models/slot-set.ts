/**
 * The slots of one model, which come and go while it runs, and the workers in them.
 * Before: the model says how many. After: each slot starts its workers and follows up their deaths.
 */
import type { Devices } from '../machine/devices.js';
import type { Placement } from '../machine/placement.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import type { RetireLimits } from '../processes/worker-listener.js';
import type { Slot } from '../slots/slot.js';

export type MakeSlot = (index: number, placement: Placement) => Slot;

interface Place {
  readonly slot: Slot;
  readonly placement: Placement;
}

export class SlotSet {
  readonly #devices: Pick<Devices, 'giveBack'>;
  readonly #mayServe: (worker: WorkerHandle) => boolean;
  readonly #make: MakeSlot;
  /** In the order of their indices. */
  #places: Place[] = [];
  #slots: readonly Slot[] = [];
  #ready: readonly WorkerHandle[] = [];

  /** `mayServe`: whether a worker that is ready may be given calls. */
  constructor(
    devices: Pick<Devices, 'giveBack'>,
    mayServe: (worker: WorkerHandle) => boolean,
    make: MakeSlot,
  ) {
    this.#devices = devices;
    this.#mayServe = mayServe;
    this.#make = make;
  }

  /** In the order of their indices, those that are being given up included. */
  get all(): readonly Slot[] {
    return this.#slots;
  }

  /** Those that are not being given up. */
  get kept(): Slot[] {
    return this.#slots.filter(({ isKept }) => isKept);
  }

  /** Workers that may be given calls. */
  get ready(): readonly WorkerHandle[] {
    return this.#ready;
  }

  /** Every worker process that is there, in whatever state. */
  get workers(): WorkerHandle[] {
    return this.#slots.flatMap(({ workers }) => workers);
  }

  /** A worker's state may have changed. */
  refresh(): void {
    this.#ready = this.workers.filter((worker) => worker.state === 'ready' && this.#mayServe(worker));
  }

  /** Starts a worker in each of these places. Each slot gets the least index that no slot has. */
  add(placements: readonly Placement[]): void {
    const added = placements.map((placement) => {
      const place = { slot: this.#make(this.#freeIndex(), placement), placement };
      this.#set([...this.#places, place].sort((a, b) => a.slot.index - b.slot.index));
      return place;
    });
    for (const { slot } of added) slot.start();
  }

  /** Gives up so many slots, none for a negative number: first those without a ready worker, then those with the highest index. */
  retire(count: number, limits: RetireLimits): void {
    const isIdle = (slot: Slot): boolean => slot.worker?.state === 'ready';
    const order = this.kept.sort((a, b) => Number(isIdle(a)) - Number(isIdle(b)) || b.index - a.index);
    for (const slot of order.slice(0, Math.max(0, count))) slot.retire(limits);
  }

  /** Those that are being given up have no more time than this from now on; who has less keeps it. */
  hurry(limits: RetireLimits): void {
    for (const slot of this.#slots) if (slot.state.name === 'closing') slot.retire(limits);
  }

  /** A slot that was given up is closed: its place is free, its index may be used again. */
  remove(closed: Slot): void {
    for (const { slot, placement } of this.#places) if (slot === closed) this.#devices.giveBack(placement);
    this.#set(this.#places.filter(({ slot }) => slot !== closed));
    this.refresh();
  }

  #set(places: Place[]): void {
    this.#places = places;
    this.#slots = places.map(({ slot }) => slot);
  }

  #freeIndex(): number {
    const used = new Set(this.#slots.map(({ index }) => index));
    let index = 0;
    while (used.has(index)) index += 1;
    return index;
  }
}
