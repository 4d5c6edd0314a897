/**
 * The slots of one model, which are added and removed while it runs, and their workers. As many workers as are wanted take
 * calls: the ready ones of the lowest indices. The others stand by; their slots do not know whether they do.
 * Before: `sizing.ts` decides how many. After: each slot starts its workers and decides what follows their deaths.
 */
import type { Devices, Placement } from '../machine/placement.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import type { RetireLimits } from '../processes/worker-listener.js';
import type { Slot } from '../slots/slot.js';

export class Crew {
  /** In the order of their indices, including those that are being retired. */
  all: readonly Slot[] = [];
  /** Workers that may be given calls: the ready ones, and those that are frozen. */
  callable: readonly WorkerHandle[] = [];
  /** Workers that would begin a call at once, or after those that they hold. */
  ready: readonly WorkerHandle[] = [];
  /** Number of workers that are wanted now; 0 of a model that takes calls: the first one starts a worker. */
  wanted = 0;
  /** Whether no worker is started any more, because the model was closed. */
  isClosed = false;
  /** When a call last ended in a worker, or a worker was ready again, on the monotonic clock; at first, the start of the model. */
  idleSinceMs = performance.now();
  /** Takes placements back, and learns how many slots are beyond the wanted ones. */
  readonly #devices: Pick<Devices, 'giveBack' | 'noteStandbys'>;
  readonly #mayServe: (worker: WorkerHandle) => boolean;
  readonly #make: (index: number, placement: Placement) => Slot;
  #standing: readonly WorkerHandle[] = [];
  /** Number of workers that may take calls; with none wanted, those there end the accepted calls. */
  #most = Infinity;

  /** `mayServe` decides whether a ready worker may be given calls. */
  constructor(
    devices: Pick<Devices, 'giveBack' | 'noteStandbys'>,
    mayServe: (worker: WorkerHandle) => boolean,
    make: (index: number, placement: Placement) => Slot,
  ) {
    this.#devices = devices;
    this.#mayServe = mayServe;
    this.#make = make;
  }

  /** The slots that are not being retired. */
  get kept(): Slot[] {
    return this.all.filter(({ isKept }) => isKept);
  }

  /** The kept slots beyond the wanted ones, in the order of their indices: last ready, latched, failing or frozen ones go first. */
  get standbys(): readonly Slot[] {
    const { kept } = this;
    const most = Math.max(0, kept.length - this.#most);
    const order = most === 0 ? [] : kept.sort((a, b) => this.#rank(a) - this.#rank(b));
    return order.slice(-most).sort((a, b) => a.index - b.index);
  }

  /** Workers that may be given calls, and those that stand by: one that lost its place ends the calls that it holds. */
  get holders(): readonly WorkerHandle[] {
    return this.#standing.length === 0 ? this.callable : [...this.callable, ...this.#standing];
  }

  /** Number of wanted workers that run or will be started again: those of latched slots do not count. */
  get running(): number {
    const running = this.kept.filter(({ state }) => state.name !== 'latched');
    return Math.min(this.wanted, running.length); // with 0 wanted, some may still be ending their calls
  }

  /** Calls that the workers hold, including those whose clients have left. */
  get heldCalls(): number {
    return this.workers.reduce((sum, worker) => sum + worker.load, 0);
  }

  /** Looks up when the oldest running call began, on the monotonic clock; null if none runs. */
  findOldestBegan(): number | null {
    const begun = this.workers.map((worker) => worker.lookUpCallBegan()).filter((atMs) => atMs !== null);
    return begun.length === 0 ? null : Math.min(...begun);
  }

  /** Every worker process, in any state. */
  get workers(): WorkerHandle[] {
    return this.all.flatMap(({ workers }) => workers);
  }

  /**
   * Updates `callable`, `ready` and `standing`; called when a worker's state may have changed. Returns whether one that stood
   * by may be given calls now.
   */
  refresh(): boolean {
    const stood = this.#standing;
    const able = this.workers.filter((worker) => worker.state === 'ready' && this.#mayServe(worker));
    const mayStand = able.length > this.#most;
    const order = mayStand ? able.sort((a, b) => Number(a.isFrozen) - Number(b.isFrozen)) : able;
    this.callable = mayStand ? order.slice(0, this.#most) : able;
    this.#standing = mayStand ? order.slice(this.#most) : [];
    this.ready = this.callable.filter(({ isFrozen }) => !isFrozen);
    this.#devices.noteStandbys(this, this.standbys.length);
    return stood.some((worker) => this.callable.includes(worker));
  }

  /** Lets so many workers take calls. */
  want(count: number): void {
    this.wanted = count;
    if (count === 0) return;
    this.#most = count;
    this.refresh();
  }

  /** Adds a slot for each placement and starts its worker. Each slot gets the least index that no slot has. */
  add(placements: readonly Placement[]): Slot[] {
    const added = placements.map((placement) => {
      const slot = this.#make(this.#freeIndex(), placement);
      this.all = [...this.all, slot].sort((a, b) => a.index - b.index);
      return slot;
    });
    this.refresh();
    for (const slot of added) slot.start();
    return added;
  }

  /** Retires `count` slots, none if it is negative: first slots without a ready worker, then those with the highest index. */
  retire(count: number, limits: RetireLimits): void {
    const isIdle = (slot: Slot): boolean => slot.worker?.state === 'ready';
    const order = this.kept.sort((a, b) => Number(isIdle(a)) - Number(isIdle(b)) || b.index - a.index);
    for (const slot of order.slice(0, Math.max(0, count))) slot.retire(limits);
  }

  /** Shortens the time of slots that are being retired to these limits; shorter limits stay. */
  hurry(limits: RetireLimits): void {
    for (const slot of this.all) if (slot.state.name === 'closing') slot.retire(limits);
  }

  /** Removes a closed slot: its device is free, and its index may be used again. */
  remove(closed: Slot): void {
    if (this.all.includes(closed)) this.#devices.giveBack(closed.placement);
    this.all = this.all.filter((slot) => slot !== closed);
    this.refresh();
  }

  /** The order in which slots are wanted; equal ones in that of their indices. */
  #rank({ failure, worker }: Slot): number {
    if (failure !== null) return 3;
    if (worker?.state !== 'ready' || !this.#mayServe(worker)) return 2;
    return worker.isFrozen ? 1 : 0;
  }

  #freeIndex(): number {
    const used = new Set(this.all.map(({ index }) => index));
    let index = 0;
    while (used.has(index)) index += 1;
    return index;
  }
}
