/**
 * A slot: a place for a worker on a device, which survives restarts. Starts workers and decides what follows their deaths, of
 * which the model tells it.
 * Its states and events are the table of `slot-lifecycle.ts`.
 */
import assert from 'node:assert/strict';
import type { ServeError } from '../../protocol/errors.js';
import type { Start } from '../budget/facts.js';
import { loose } from '../machine/guest.js';
import type { Placement } from '../machine/placement.js';
import { NEW_SLOT, afterDeath, lackedMemory, neverFits, type RestartRules } from './restart-policy.js';
import { nextSlotState, type SlotEvent, type SlotState } from './slot-lifecycle.js';
import type { SpawnGate } from './spawn-gate.js';
import { neverStarted, type WorkerDeath } from '../processes/worker-death.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import type { RetireLimits } from '../processes/worker-listener.js';

interface SlotOptions {
  readonly index: number;
  readonly placement: Placement;
  /** Name of its model; the gate is fair among models. */
  readonly model: string;
  readonly gate: SpawnGate;
  rules(): RestartRules;
  spawn(slot: Slot): WorkerHandle;
  /** Whether other workers of the model are ready. */
  othersServe(): boolean;
  /** Whether the model was ready before and has no ready worker now. */
  isModelDown(): boolean;
  /** Sends an idle worker of another model on its device away; false if there is none, or no memory budget. */
  makesRoom(): boolean;
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

export class Slot {
  readonly index: number;
  readonly placement: Placement;
  readonly device: string;
  /** Number of workers that were started because one died. */
  restarts = 0;
  /** The last death of a worker since the slot last started again. */
  lastDeath: WorkerDeath | null = null;
  /** Whether the last start ran out of memory, and does not count as failed since another worker leaves for the next one. */
  isSecondTry = false;
  readonly #options: SlotOptions;
  #state: SlotState = { name: 'waiting' };
  /** The decision after the last death that counts. */
  #history = NEW_SLOT;
  /** Every process of this slot: the worker in its state, and workers that are starting or ending. */
  readonly #workers = new Set<WorkerHandle>();
  /** For each worker that is starting, its start, which has a place at the gate. */
  readonly #inGate = new Map<WorkerHandle, Start>();
  /** The start that waits at the gate, or was just allowed; null if none does. */
  #queued: Start | null = null;
  /** Whether a worker of it was ready before. */
  #wasReady = false;
  #retireLimits: RetireLimits = { finishMs: 0, graceMs: 0 };
  #backoffTimer: NodeJS.Timeout | undefined;
  #calls = 0;

  constructor(options: SlotOptions) {
    this.#options = options;
    this.index = options.index;
    this.placement = options.placement;
    this.device = options.placement.device;
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

  /** Number of calls that workers of this slot have finished. */
  get calls(): number {
    return this.workers.reduce((sum, worker) => sum + worker.finishedCalls, this.#calls);
  }

  /** Why it is latched or `failing`: more starts in a row have failed than allowed, and none is ready yet. Null if it is neither. */
  get failure(): ServeError | null {
    return this.#state.name === 'latched' ? this.#state.error : this.#history.failure;
  }

  /** The wait of its next start at the gate, with its reason in words that follow "waiting for"; null if none waits there. */
  get startWait(): { readonly reason: string; readonly ms: number } | null {
    const start = this.#queued;
    const reason = start === null ? null : this.#options.gate.waitsFor(start);
    return start === null || reason === null ? null : { reason, ms: performance.now() - start.sinceMs };
  }

  /** Starts again with a new worker and no history: once the present worker has finished its calls and ended, or at once if there is none. */
  replace(limits: RetireLimits): void {
    if (!this.isKept) return;
    this.#forget();
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
    this.#forget();
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
    this.#forget();
    this.#retireLimits = limits;
    if (this.#state.name === 'renewing') this.#state.next?.retire(limits);
    this.#enter('renew', { name: 'renewing', worker, next: null }, null);
    if (this.#queued === null) this.start();
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

  /** Starts a worker as soon as the device and the cap allow. */
  start(): void {
    const { gate, model, isModelDown } = this.#options;
    const isRenewal = this.#state.name === 'renewing';
    const start: Start = {
      device: this.device,
      model,
      sinceMs: performance.now(),
      isRetry: this.#history.failedStarts > 0,
      isRenewal,
      isReplacement: this.#wasReady && !isRenewal,
      afterLeaving: this.isSecondTry,
      pid: null,
      granted: null,
      isLogged: false,
      wentWhileDown: false,
      isModelDown,
      go: () => this.#startSoon(start),
      refuse: (error) => this.#refuseStart(start, error),
      withdraw: () => {
        if (this.#queued === start) this.#options.onNotNeeded(this);
      },
    };
    this.#queued = start;
    gate.enter(start);
  }

  #startSoon(start: Start): void {
    if (this.#options.othersServe()) loose(setTimeout(() => this.#start(start), OTHERS_FIRST_MS));
    else setImmediate(() => this.#start(start));
  }

  /** There will never be memory for this start. A renewal goes on without a worker meanwhile. */
  #refuseStart(start: Start, error: ServeError): void {
    if (this.#queued !== start) return;
    if (this.#state.name === 'renewing') {
      this.replace(this.#retireLimits);
      return;
    }
    this.#withdraw();
    this.#enter('lastDeath', { name: 'latched', error, neverFits: true }, null);
  }

  #start(start: Start): void {
    if (this.#queued !== start) return; // withdrawn meanwhile
    this.#queued = null;
    try {
      const worker = this.#options.spawn(this);
      this.#workers.add(worker);
      start.pid = worker.pid;
      this.#inGate.set(worker, start);
      if (this.#state.name === 'renewing') this.#enter('started', { ...this.#state, next: worker }, null);
      else this.#enter('started', { name: 'live', worker }, null);
    } catch (cause) {
      this.#options.gate.leave(start);
      this.#onFailedStart(neverStarted(cause)); // the system may lack processes just now: tried again as after any death
    }
  }

  /** A worker of the slot is ready. */
  onReady(worker: WorkerHandle): void {
    this.#leaveGate(worker);
    this.isSecondTry = false;
    this.#history = { ...this.#history, failure: null };
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
    this.#history = NEW_SLOT;
    this.restarts += 1;
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
      if (!death.wanted) this.lastDeath = death; // another one had taken its place
      this.#options.onChange(this, death);
    } else if (state.name === 'replacing') this.#wait('death', death);
    else if (state.name === 'renewing') this.#onGoneBeforeNext(state.next, death);
    else this.#afterDeath(death);
    this.#options.gate.look(); // the last ready worker of the model may have gone, and another slot's start wait
  }

  #onGoneAtEnd(death: WorkerDeath): void {
    this.lastDeath = death;
    const [left] = this.#workers;
    if (left === undefined) this.#enter('end', { name: 'closed' }, death);
    else this.#enter('death', { name: 'closing', worker: left }, death);
  }

  /** The present worker died before the next one was ready, which takes its place. */
  #onGoneBeforeNext(next: WorkerHandle | null, death: WorkerDeath): void {
    this.lastDeath = death;
    this.restarts += 1;
    if (next === null)
      this.#enter('death', { name: 'waiting' }, death); // its start is queued at the gate
    else this.#enter('nextAlone', { name: 'live', worker: next }, death);
  }

  #onFailedStart(death: WorkerDeath): void {
    if (this.#state.name !== 'renewing') {
      this.#afterDeath(death);
      return;
    }
    this.lastDeath = death;
    this.#enter('nextDies', { name: 'live', worker: this.#state.worker }, death);
  }

  /** A worker of the slot has died, and no other one has its place. */
  #afterDeath(death: WorkerDeath): void {
    this.isSecondTry = this.#mayTryAgain(death);
    if (!this.isSecondTry) this.lastDeath = death;
    // The start after a death in the warm-up does without it: no failure of the app.
    const isNoFailure = this.isSecondTry || (death.inWarmUp === true && !death.wanted);
    if (!isNoFailure) this.#history = afterDeath(this.#history, death, this.#options.rules(), Math.random());
    const { pauseMs, failure } = isNoFailure ? NEW_SLOT : this.#history;
    if (pauseMs === null) {
      const error = failure as ServeError;
      this.#enter('lastDeath', { name: 'latched', error, neverFits: neverFits(death) }, death);
      return;
    }
    this.restarts += 1;
    if (pauseMs === 0) this.#wait('death', death);
    else this.#backOff(pauseMs, death);
  }

  /** Whether it ran out of memory while it started, for the first time in a row, and another worker has left for the next try. */
  #mayTryAgain(death: WorkerDeath): boolean {
    const isKilled = death.exit.signal === 'SIGKILL' && death.cause === 'signal'; // likely by the kernel
    if (this.isSecondTry || death.during !== 'start' || !(isKilled || lackedMemory(death))) return false;
    return this.#options.makesRoom();
  }

  #backOff(delayMs: number, death: WorkerDeath): void {
    this.#backoffTimer = loose(setTimeout(() => this.#wait('pauseOver', null), delayMs));
    this.#enter('badDeath', { name: 'backoff', untilMs: performance.now() + delayMs }, death); // may end the server
  }

  /** Waits at the gate. */
  #wait(event: SlotEvent, death: WorkerDeath | null): void {
    this.#enter(event, { name: 'waiting' }, death);
    this.start();
  }

  #cancelStart(): void {
    clearTimeout(this.#backoffTimer);
    this.#withdraw();
  }

  /** Gives up its place at the gate. */
  #withdraw(): void {
    if (this.#queued !== null) this.#options.gate.leave(this.#queued);
    this.#queued = null;
  }

  #leaveGate(worker: WorkerHandle): void {
    const start = this.#inGate.get(worker);
    if (start !== undefined) this.#options.gate.leave(start);
    this.#inGate.delete(worker);
  }

  /** Starts that failed before do not count any more. */
  #forget(): void {
    this.#history = NEW_SLOT;
    this.lastDeath = null;
  }

  /** Changes the state, as the table has it for this event; nothing else does. */
  #enter(event: SlotEvent, state: SlotState, death: WorkerDeath | null): void {
    assert.equal(state.name, nextSlotState(this.#state.name, event));
    this.#state = state;
    this.#options.onChange(this, death);
  }
}
