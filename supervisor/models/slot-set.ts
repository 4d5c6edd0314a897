/**
 * The slots of one model, which are added and removed while it runs, and their workers. As many workers as are wanted take
 * calls: the ready ones of the lowest indices. The others stand by, which their slots do not know.
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

/** Takes placements back, and learns how many slots are beyond the wanted ones. */
type PlacementOwner = Pick<Devices, 'giveBack' | 'noteStandbys'>;

export class SlotSet {
  readonly #devices: PlacementOwner;
  readonly #mayServe: (worker: WorkerHandle) => boolean;
  readonly #make: MakeSlot;
  /** In the order of their indices. */
  #placed: PlacedSlot[] = [];
  #slots: readonly Slot[] = [];
  #callable: readonly WorkerHandle[] = [];
  #ready: readonly WorkerHandle[] = [];
  #standing: readonly WorkerHandle[] = [];
  #wanted = Infinity;

  /** `mayServe` decides whether a ready worker may be given calls. */
  constructor(devices: PlacementOwner, mayServe: (worker: WorkerHandle) => boolean, make: MakeSlot) {
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

  /** The kept slots beyond the wanted ones, in the order of their indices: last ready, latched, failing or frozen ones go first. */
  get standbys(): readonly Slot[] {
    const { kept } = this;
    const most = Math.max(0, kept.length - this.#wanted);
    return most === 0 ? NO_SLOTS : byIndex(kept.sort((a, b) => this.#rank(a) - this.#rank(b)).slice(-most));
  }

  /** Workers that may be given calls, and those that stand by: one that lost its place ends the calls that it holds. */
  get holders(): readonly WorkerHandle[] {
    return this.#standing.length === 0 ? this.#callable : [...this.#callable, ...this.#standing];
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

  /**
   * Updates `callable`, `ready` and `standing`; called when a worker's state may have changed. Returns whether one that stood
   * by may be given calls now.
   */
  refresh(): boolean {
    const stood = this.#standing;
    const able = this.workers.filter((worker) => worker.state === 'ready' && this.#mayServe(worker));
    const mayStand = able.length > this.#wanted;
    const order = mayStand ? able.sort((a, b) => Number(a.isFrozen) - Number(b.isFrozen)) : able;
    this.#callable = mayStand ? order.slice(0, this.#wanted) : able;
    this.#standing = mayStand ? order.slice(this.#wanted) : NO_WORKERS;
    this.#ready = this.#callable.filter(({ isFrozen }) => !isFrozen);
    this.#devices.noteStandbys(this, this.standbys.length);
    return stood.some((worker) => this.#callable.includes(worker));
  }

  /** Lets so many workers take calls. */
  want(count: number): void {
    this.#wanted = count;
    this.refresh();
  }

  /** Adds a slot for each placement and starts its worker. Each slot gets the least index that no slot has. */
  add(placements: readonly Placement[]): Slot[] {
    const all = placements.map((placement) => {
      const added = { slot: this.#make(this.#freeIndex(), placement), placement };
      this.#set([...this.#placed, added].sort((a, b) => a.slot.index - b.slot.index));
      return added;
    });
    this.refresh();
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

  /** The order in which slots are wanted; equal ones in that of their indices. */
  #rank({ failure, worker }: Slot): number {
    if (failure !== null) return 3;
    if (worker?.state !== 'ready' || !this.#mayServe(worker)) return 2;
    return worker.isFrozen ? 1 : 0;
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

const NO_SLOTS: readonly Slot[] = [];
const NO_WORKERS: readonly WorkerHandle[] = [];

function byIndex(slots: readonly Slot[]): Slot[] {
  return slots.toSorted((a, b) => a.index - b.index);
}
