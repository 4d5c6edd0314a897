/**
 * A slot: a place for a worker on a device, which survives restarts. Starts workers and decides what follows their deaths, of
 * which the model tells it.
 * Its states and events are the table of `slot-lifecycle.ts`.
 */
import assert from 'node:assert/strict';
import type { ServeError } from '../../protocol/errors.js';
import type { RestartRules } from './restart-policy.js';
import { SlotFailures } from './slot-failures.js';
import { nextSlotState, type SlotEvent, type SlotState } from './slot-lifecycle.js';
import type { SpawnGate, Start, StartWait } from './spawn-gate.js';
import { neverStarted, type WorkerDeath } from '../processes/worker-death.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import type { RetireLimits } from '../processes/worker-listener.js';

export interface SlotOptions {
  readonly index: number;
  readonly device: string;
  /** Name of its model; the gate is fair among models. */
  readonly model: string;
  readonly gate: SpawnGate;
  rules(): RestartRules;
  spawn(slot: Slot): WorkerHandle;
  /** Whether other workers of the model are ready. */
  othersServe(): boolean;
  /** Whether the model was ready before and has no ready worker now. */
  isModelDown(): boolean;
  /** Sends an idle worker of another model on this device away; false if there is none, or no memory budget. */
  makesRoom(device: string): boolean;
  /** No call waits for the worker of this slot, whose start waits for memory. */
  onNotNeeded(slot: Slot): void;
  /** The slot's state changed, or one of its workers is gone, or both. */
  onChange(slot: Slot, death: WorkerDeath | null): void;
}

/**
 * A start costs this process some ms: it waits for so long while other workers serve, because they have just got what a death
 * has left.
 */
const OTHERS_FIRST_MS = 20;

/** A start that waits at the gate. */
interface Queued {
  readonly start: Start;
  leave: () => void;
  /** Null until it was allowed. */
  worker: WorkerHandle | null;
}

export class Slot {
  readonly index: number;
  readonly device: string;
  readonly #options: SlotOptions;
  #state: SlotState = { name: 'waiting' };
  readonly #failures: SlotFailures;
  /** Every process of this slot: the worker in its state, and workers that are starting or ending. */
  readonly #workers = new Set<WorkerHandle>();
  /** For each worker that is starting, the function that frees its place at the gate. */
  readonly #inGate = new Map<WorkerHandle, () => void>();
  /** The start that waits at the gate; null if none does. */
  #queued: Queued | null = null;
  /** Whether a worker of it was ready before. */
  #wasReady = false;
  #retireLimits: RetireLimits = { finishMs: 0, graceMs: 0 };
  #backoffTimer: NodeJS.Timeout | undefined;
  #restarts = 0;
  #calls = 0;

  constructor(options: SlotOptions) {
    this.#options = options;
    this.index = options.index;
    this.device = options.device;
    this.#failures = new SlotFailures(
      () => options.rules(),
      () => options.makesRoom(options.device),
    );
  }

  get state(): SlotState {
    return this.#state;
  }

  /** The worker that serves this slot; null if it has none. */
  get worker(): WorkerHandle | null {
    return 'worker' in this.#state ? this.#state.worker : null;
  }

  /** Every process of the slot, including workers that are starting or ending. */
  get workers(): readonly WorkerHandle[] {
    return [...this.#workers];
  }

  /** Whether the slot has not been retired, whatever the state of its workers. */
  get isKept(): boolean {
    return this.#state.name !== 'closing' && this.#state.name !== 'closed';
  }

  /** Number of workers that were started because one died. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Number of calls that workers of this slot have finished. */
  get calls(): number {
    return this.workers.reduce((sum, worker) => sum + worker.finishedCalls, this.#calls);
  }

  /** The last death of a worker since the slot last started again. */
  get lastDeath(): WorkerDeath | null {
    return this.#failures.lastDeath;
  }

  /** Why it is latched or `failing`: more starts in a row have failed than allowed, and none is ready yet. Null if it is neither. */
  get failure(): ServeError | null {
    return this.#state.name === 'latched' ? this.#state.error : this.#failures.failing;
  }

  /** Whether the last start ran out of memory, and does not count as failed since another worker leaves for the next one. */
  get isSecondTry(): boolean {
    return this.#failures.isSecondTry;
  }

  /** The wait of its next start at the gate; null if none waits there. */
  get startWait(): StartWait | null {
    return this.#queued === null ? null : this.#options.gate.waitOf(this.#queued.start);
  }

  /** Starts a worker as soon as the device and the cap allow. */
  start(): void {
    this.#queueAtGate();
  }

  /** Starts again with a new worker and no history: once the present worker has finished its calls and ended, or at once if there is none. */
  replace(limits: RetireLimits): void {
    if (!this.isKept) return;
    this.#failures.forget();
    const state = this.#state;
    if (state.name === 'live' || state.name === 'renewing') {
      this.#enter('replace', { name: 'replacing', worker: state.worker }, null);
      this.#withdraw();
      for (const worker of this.workers) worker.retire(limits);
    } else this.#startNow();
  }

  /** If it is latched or failing, starts at once and without its history; a start that is under way goes on. */
  startAgain(): void {
    if (!this.isKept || this.failure === null) return;
    this.#failures.forget();
    this.#startNow();
  }

  #startNow(): void {
    if (this.#state.name === 'backoff' || this.#state.name === 'latched') {
      this.#cancelStart();
      this.#wait('replace', null);
    } else this.#options.onChange(this, null); // a start that is under way does not fail calls any more
  }

  /**
   * Replaces the worker without a gap: the present one continues until the next is ready, and stays if that one dies
   * before. On a GPU, whose memory may not hold two, and if the present one is not ready, the same as `replace`.
   */
  renew(limits: RetireLimits): void {
    const { worker } = this;
    const isServing = this.#state.name === 'live' || this.#state.name === 'renewing';
    if (!isServing || worker?.state !== 'ready' || this.device !== 'cpu') {
      this.replace(limits);
      return;
    }
    this.#failures.forget();
    this.#retireLimits = limits;
    if (this.#state.name === 'renewing') this.#state.next?.retire(limits);
    this.#enter('renew', { name: 'renewing', worker, next: null }, null);
    if (this.#queued === null) this.#queueAtGate();
  }

  /** Retires the slot: its worker gets no more calls and ends once it has finished those that it holds. */
  retire(limits: RetireLimits): void {
    for (const worker of this.#startNoMore()) worker.retire(limits);
  }

  /** Closes the slot; its worker is asked to stop. */
  close(graceMs: number): void {
    for (const worker of this.#startNoMore()) worker.stop(graceMs);
  }

  /** Closes the slot; its worker is killed. */
  kill(): void {
    if (this.#state.name === 'closed') return;
    for (const worker of this.#startNoMore()) worker.kill('stop');
  }

  /** Starts no more workers. Returns those that exist. */
  #startNoMore(): readonly WorkerHandle[] {
    this.#cancelStart();
    const worker = this.worker ?? this.workers[0];
    if (worker === undefined) this.#enter('end', { name: 'closed' }, null);
    else this.#enter('retire', { name: 'closing', worker }, null);
    return this.workers;
  }

  #queueAtGate(): void {
    const { gate, model, isModelDown } = this.#options;
    const isRenewal = this.#state.name === 'renewing';
    const start: Start = {
      device: this.device,
      model,
      isRetry: this.#failures.hasFailed,
      isRenewal,
      isReplacement: this.#wasReady && !isRenewal,
      isModelDown,
      afterLeaving: this.#failures.isSecondTry,
      pid: () => queued.worker?.pid ?? null,
      refuse: (error) => this.#refuseStart(queued, error),
      withdraw: () => this.#withdrawStart(queued),
    };
    // `go` may be called before `enter` returns.
    const queued: Queued = { start, leave: () => {}, worker: null };
    this.#queued = queued;
    queued.leave = gate.enter(start, () => this.#startSoon(queued));
  }

  #startSoon(queued: Queued): void {
    if (this.#options.othersServe()) setTimeout(() => this.#start(queued), OTHERS_FIRST_MS);
    else setImmediate(() => this.#start(queued));
  }

  /** There will never be memory for this start. A renewal goes on without a worker meanwhile. */
  #refuseStart(queued: Queued, error: ServeError): void {
    if (this.#queued !== queued) return;
    if (this.#state.name === 'renewing') {
      this.replace(this.#retireLimits);
      return;
    }
    this.#withdraw();
    this.#enter('lastDeath', { name: 'latched', error, neverFits: true }, null);
  }

  /** No call waits for this start any more. */
  #withdrawStart(queued: Queued): void {
    if (this.#queued === queued) this.#options.onNotNeeded(this);
  }

  #start(queued: Queued): void {
    if (this.#queued !== queued) return; // withdrawn meanwhile
    this.#queued = null;
    try {
      const worker = this.#options.spawn(this);
      this.#workers.add(worker);
      queued.worker = worker;
      this.#inGate.set(worker, queued.leave);
      if (this.#state.name === 'renewing') this.#enter('started', { ...this.#state, next: worker }, null);
      else this.#enter('started', { name: 'live', worker }, null);
    } catch (cause) {
      queued.leave();
      this.#onFailedStart(neverStarted(cause)); // the system may lack processes just now: tried again as after any death
    }
  }

  /** A worker of the slot is ready. */
  onReady(worker: WorkerHandle): void {
    this.#leaveGate(worker);
    this.#failures.onReady();
    this.#wasReady = true;
    if (this.#state.name === 'renewing' && this.#state.next === worker) {
      const before = this.#state.worker;
      this.#enter('nextReady', { name: 'live', worker }, null);
      before.retire(this.#retireLimits);
    }
  }

  /** A worker of the slot gets no more calls. A successor starts at once; on a GPU, whose memory may not hold two, once this worker has ended. */
  onLeaving(worker: WorkerHandle): void {
    if (this.worker !== worker || this.device !== 'cpu') return;
    const state = this.#state;
    if (state.name !== 'live' && state.name !== 'renewing') return;
    const next = state.name === 'renewing' ? state.next : null;
    // One that ends its last calls is enough: else a slot would have a process more with each that leaves.
    if (this.workers.some((other) => other !== worker && other !== next)) return;
    this.#failures.startAfresh();
    this.#restarts += 1;
    if (state.name === 'live') this.#wait('leaves', null);
    else if (next === null)
      this.#enter('leaves', { name: 'waiting' }, null); // its start is queued at the gate
    else this.#enter('nextAlone', { name: 'live', worker: next }, null);
  }

  /** A worker of the slot has ended: decides what follows. */
  onGone(worker: WorkerHandle, death: WorkerDeath): void {
    this.#leaveGate(worker);
    this.#workers.delete(worker);
    this.#calls += death.finishedCalls;
    const state = this.#state;
    if (state.name === 'closing') this.#onGoneAtEnd(death);
    else if (state.name === 'renewing' && state.next === worker) this.#onFailedStart(death);
    else if (this.worker !== worker) {
      if (!death.wanted) this.#failures.lastDeath = death; // another one had taken its place
      this.#options.onChange(this, death);
    } else if (state.name === 'replacing') this.#wait('death', death);
    else if (state.name === 'renewing') this.#onGoneBeforeNext(state.next, death);
    else this.#afterDeath(death);
    this.#options.gate.look(); // the last ready worker of the model may have gone, and another slot's start wait
  }

  #onGoneAtEnd(death: WorkerDeath): void {
    this.#failures.lastDeath = death;
    const [left] = this.#workers;
    if (left === undefined) this.#enter('end', { name: 'closed' }, death);
    else this.#enter('death', { name: 'closing', worker: left }, death);
  }

  /** The present worker died before the next one was ready, which takes its place. */
  #onGoneBeforeNext(next: WorkerHandle | null, death: WorkerDeath): void {
    this.#failures.lastDeath = death;
    this.#restarts += 1;
    if (next === null)
      this.#enter('death', { name: 'waiting' }, death); // its start is queued at the gate
    else this.#enter('nextAlone', { name: 'live', worker: next }, death);
  }

  #onFailedStart(death: WorkerDeath): void {
    if (this.#state.name !== 'renewing') {
      this.#afterDeath(death);
      return;
    }
    this.#failures.lastDeath = death;
    this.#enter('nextDies', { name: 'live', worker: this.#state.worker }, death);
  }

  #afterDeath(death: WorkerDeath): void {
    const next = this.#failures.onDeath(death);
    if (next.action === 'latch') {
      const { error, neverFits } = next;
      this.#enter('lastDeath', { name: 'latched', error, neverFits }, death);
      return;
    }
    this.#restarts += 1;
    if (next.delayMs === 0) this.#wait('death', death);
    else this.#backOff(next.delayMs, death);
  }

  #backOff(delayMs: number, death: WorkerDeath): void {
    this.#backoffTimer = setTimeout(() => this.#wait('pauseOver', null), delayMs);
    this.#enter('badDeath', { name: 'backoff', untilMs: performance.now() + delayMs }, death); // may end the server
  }

  /** Waits at the gate. */
  #wait(event: SlotEvent, death: WorkerDeath | null): void {
    this.#enter(event, { name: 'waiting' }, death);
    this.#queueAtGate();
  }

  #cancelStart(): void {
    clearTimeout(this.#backoffTimer);
    this.#withdraw();
  }

  /** Gives up its place at the gate. */
  #withdraw(): void {
    this.#queued?.leave();
    this.#queued = null;
  }

  #leaveGate(worker: WorkerHandle): void {
    this.#inGate.get(worker)?.();
    this.#inGate.delete(worker);
  }

  /** Changes the state, as the table has it for this event; nothing else does. */
  #enter(event: SlotEvent, state: SlotState, death: WorkerDeath | null): void {
    assert.equal(state.name, nextSlotState(this.#state.name, event));
    this.#state = state;
    this.#options.onChange(this, death);
  }
}
