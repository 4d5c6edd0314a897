/**
 * A slot on a device: it holds a worker, and decides what follows its death. Survives restarts.
 * Which event takes it from which state to which is a table of docs/lifecycle.md.
 */
import type { LoadedInfo } from '../../protocol/wire/messages.js';
import { NEW_SLOT, afterDeath, type RestartRules, type SlotHistory } from './restart-policy.js';
import type { SlotState } from './slot-state.js';
import type { SpawnGate } from './spawn-gate.js';
import { latchError } from './start-error.js';
import { neverStarted, thrownAtStart, type WorkerDeath } from '../processes/worker-death.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import type { LoadedLimits, RetireLimits, WorkerListener } from '../processes/worker-listener.js';

export interface SlotListener extends Omit<WorkerListener, 'onReady' | 'onLoaded' | 'onGone'> {
  onLoaded(worker: WorkerHandle, info: LoadedInfo): LoadedLimits;
  onReady(worker: WorkerHandle): void;
  /** The slot's state changed, or one of its workers died, or both. */
  onSlotChange(slot: Slot, death: WorkerDeath | null): void;
}

export interface SlotOptions {
  readonly index: number;
  readonly device: string;
  /** Name of its model, to which the gate is fair. */
  readonly model: string;
  readonly gate: SpawnGate;
  rules(): RestartRules;
  spawn(listener: WorkerListener): WorkerHandle;
  readonly listener: SlotListener;
}

export class Slot {
  readonly index: number;
  readonly device: string;
  readonly #options: SlotOptions;
  #state: SlotState = { name: 'waiting' };
  #history: SlotHistory = NEW_SLOT;
  /** Every process of this slot that is there: the one in its state, and those that are on their way out. */
  readonly #workers = new Set<WorkerHandle>();
  /** How those that are starting leave the gate. */
  readonly #inGate = new Map<WorkerHandle, () => void>();
  /** The start that waits at the gate; null if none does. */
  #queued: { leave: () => void } | null = null;
  #retireLimits: RetireLimits = { finishMs: 0, graceMs: 0 };
  #backoffTimer: NodeJS.Timeout | null = null;
  #restarts = 0;
  #calls = 0;
  #lastDeath: WorkerDeath | null = null;

  constructor(options: SlotOptions) {
    this.#options = options;
    this.index = options.index;
    this.device = options.device;
  }

  get state(): SlotState {
    return this.#state;
  }

  /** The one that has its place; null while there is none. */
  get worker(): WorkerHandle | null {
    return 'worker' in this.#state ? this.#state.worker : null;
  }

  /** Every process that is there, those on their way in and out included. */
  get workers(): readonly WorkerHandle[] {
    return [...this.#workers];
  }

  /** Whether it has, or waits for, or may have again, a worker. */
  get isKept(): boolean {
    return this.#state.name !== 'closing' && this.#state.name !== 'closed';
  }

  /** Workers started after the first because one died. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Calls ended here, over all workers of this slot. */
  get calls(): number {
    return this.workers.reduce((sum, worker) => sum + worker.finishedCalls, this.#calls);
  }

  /** Since the slot was last to begin anew. */
  get lastDeath(): WorkerDeath | null {
    return this.#lastDeath;
  }

  /** Starts a worker as soon as the device and the cap allow. */
  start(): void {
    this.#queueAtGate();
  }

  /** The slot begins anew: once the present worker has ended its calls and gone, or at once if there is none. */
  replace(limits: RetireLimits): void {
    if (!this.isKept) return;
    this.#beginAnew();
    const state = this.#state;
    if (state.name === 'live' || state.name === 'renewing') {
      this.#enter({ name: 'replacing', worker: state.worker }, null);
      this.#withdraw();
      for (const worker of this.workers) worker.retire(limits);
    } else if (state.name === 'backoff' || state.name === 'latched') {
      this.#cancelStart();
      this.#restartIn(0, null);
    }
  }

  /**
   * The slot gets a new worker without a gap: the present one goes on until the next is ready, and stays if that one
   * dies before. On a GPU, whose memory may not hold two, and if the present one is not ready: as `replace` does.
   */
  renew(limits: RetireLimits): void {
    const { worker } = this;
    const isServing = this.#state.name === 'live' || this.#state.name === 'renewing';
    if (!isServing || worker?.state !== 'ready' || this.device !== 'cpu') {
      this.replace(limits);
      return;
    }
    this.#beginAnew();
    this.#retireLimits = limits;
    if (this.#state.name === 'renewing') this.#state.next?.retire(limits);
    this.#enter({ name: 'renewing', worker, next: null }, null);
    if (this.#queued === null) this.#queueAtGate();
  }

  /** The slot is given up: its worker gets no more calls, and goes once it has ended those that it holds. */
  retire(limits: RetireLimits): void {
    for (const worker of this.#letNobodyFollow()) worker.retire(limits);
  }

  /** No worker will follow the present one; ends the present one politely. */
  close(graceMs: number): void {
    for (const worker of this.#letNobodyFollow()) worker.stop(graceMs);
  }

  /** No worker will follow the present one; kills the present one. */
  kill(): void {
    if (this.#state.name === 'closed') return;
    for (const worker of this.#letNobodyFollow()) worker.kill('stop');
  }

  #letNobodyFollow(): readonly WorkerHandle[] {
    this.#cancelStart();
    const worker = this.worker ?? this.workers[0];
    this.#enter(worker === undefined ? { name: 'closed' } : { name: 'closing', worker }, null);
    return this.workers;
  }

  #beginAnew(): void {
    this.#history = NEW_SLOT;
    this.#lastDeath = null;
  }

  #queueAtGate(): void {
    // `go` may be called before `enter` returns.
    const queued = { leave: (): void => {} };
    this.#queued = queued;
    const { gate, model } = this.#options;
    const start = { device: this.device, model, isRetry: this.#history.failedStarts > 0 };
    queued.leave = gate.enter(start, () => setImmediate(() => this.#takeTurn(queued)));
  }

  #takeTurn(queued: { leave: () => void }): void {
    if (this.#queued !== queued) return; // withdrawn meanwhile
    this.#queued = null;
    const { listener } = this.#options;
    try {
      const worker: WorkerHandle = this.#options.spawn({
        ...listener,
        onLoaded: (info) => listener.onLoaded(worker, info),
        onReady: () => this.#onReady(worker),
        onGone: (death) => this.#onGone(worker, death),
      });
      this.#workers.add(worker);
      this.#inGate.set(worker, queued.leave);
      if (this.#state.name === 'renewing') this.#enter({ ...this.#state, next: worker }, null);
      else this.#enter({ name: 'live', worker }, null);
    } catch (cause) {
      queued.leave();
      this.#onFailedStart(neverStarted(cause)); // no process to be had just now, perhaps: tried again as after any death
    }
  }

  #onReady(worker: WorkerHandle): void {
    this.#leaveGate(worker);
    if (this.#state.name === 'renewing' && this.#state.next === worker) {
      const before = this.#state.worker;
      this.#enter({ name: 'live', worker }, null);
      before.retire(this.#retireLimits);
    }
    this.#options.listener.onReady(worker);
  }

  #onGone(worker: WorkerHandle, death: WorkerDeath): void {
    this.#leaveGate(worker);
    this.#workers.delete(worker);
    this.#calls += death.finishedCalls;
    const state = this.#state;
    if (state.name === 'closing') this.#onGoneAtEnd(death);
    else if (state.name === 'renewing' && state.next === worker) this.#onFailedStart(death);
    else if (this.worker !== worker) this.#options.listener.onSlotChange(this, death);
    else if (state.name === 'replacing') this.#restartIn(0, death);
    else if (state.name === 'renewing') this.#onGoneTooEarly(state.next, death);
    else this.#afterDeath(death);
  }

  #onGoneAtEnd(death: WorkerDeath): void {
    this.#lastDeath = death;
    const [left] = this.#workers;
    this.#enter(left === undefined ? { name: 'closed' } : { name: 'closing', worker: left }, death);
  }

  /** The next worker is on its way already. */
  #onGoneTooEarly(next: WorkerHandle | null, death: WorkerDeath): void {
    this.#lastDeath = death;
    this.#restarts += 1;
    this.#enter(next === null ? { name: 'waiting' } : { name: 'live', worker: next }, death);
  }

  #onFailedStart(death: WorkerDeath): void {
    if (this.#state.name !== 'renewing') {
      this.#afterDeath(death);
      return;
    }
    this.#lastDeath = death;
    this.#enter({ name: 'live', worker: this.#state.worker }, death);
  }

  #afterDeath(death: WorkerDeath): void {
    this.#lastDeath = death;
    const cause = { ...death, permanent: death.fatal?.permanent ?? false, thrown: thrownAtStart(death) };
    const decision = afterDeath(this.#history, cause, this.#options.rules(), Math.random());
    this.#history = decision.history;
    if (decision.action === 'latch') {
      this.#enter({ name: 'latched', error: latchError(death, decision.repeats) }, death);
      return;
    }
    this.#restarts += 1;
    this.#restartIn(decision.delayMs, death);
  }

  #restartIn(delayMs: number, death: WorkerDeath | null): void {
    if (delayMs === 0) {
      this.#enter({ name: 'waiting' }, death);
      this.#queueAtGate();
      return;
    }
    this.#enter({ name: 'backoff', untilMs: performance.now() + delayMs }, death);
    this.#backoffTimer = setTimeout(() => {
      this.#backoffTimer = null;
      this.#enter({ name: 'waiting' }, null);
      this.#queueAtGate();
    }, delayMs);
  }

  #cancelStart(): void {
    if (this.#backoffTimer !== null) clearTimeout(this.#backoffTimer);
    this.#backoffTimer = null;
    this.#withdraw();
  }

  /** Its turn at the gate is not wanted any more. */
  #withdraw(): void {
    this.#queued?.leave();
    this.#queued = null;
  }

  #leaveGate(worker: WorkerHandle): void {
    this.#inGate.get(worker)?.();
    this.#inGate.delete(worker);
  }

  #enter(state: SlotState, death: WorkerDeath | null): void {
    this.#state = state;
    this.#options.listener.onSlotChange(this, death);
  }
}
