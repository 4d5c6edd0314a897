/**
 * A slot on a device: it holds a worker, and decides what follows its death. Survives restarts.
 * Which event takes it from which state to which is a table of docs/lifecycle.md.
 */
import { ServeError } from '../../protocol/errors.js';
import { NEW_SLOT, afterDeath, type RestartRules, type SlotHistory } from './restart-policy.js';
import type { SpawnGate } from './spawn-gate.js';
import { neverStarted, thrownAtStart, type WorkerDeath } from '../processes/worker-death.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import type { RetireLimits, WorkerListener } from '../processes/worker-listener.js';

export type SlotState =
  | { readonly name: 'waiting' }
  | { readonly name: 'live'; readonly worker: WorkerHandle }
  | { readonly name: 'replacing'; readonly worker: WorkerHandle }
  | { readonly name: 'backoff'; readonly untilMs: number }
  | { readonly name: 'latched'; readonly error: ServeError }
  | { readonly name: 'closing'; readonly worker: WorkerHandle }
  | { readonly name: 'closed' };

/** The states, in the words of docs/lifecycle.md. */
export const SLOT_STATES: Readonly<Record<SlotState['name'], string>> = {
  waiting: 'Its turn to start has not come.',
  live: 'It has a worker.',
  replacing: 'Its worker ends its calls and goes; the next one starts then.',
  backoff: 'Its worker died; the next start is set.',
  latched: 'Its workers keep dying, or can never start: none is started again.',
  closing: 'It is given up, or the server stops; its worker ends its work.',
  closed: 'It was given up, or the server has stopped.',
};

export interface SlotListener extends Omit<WorkerListener, 'onReady' | 'onGone'> {
  onReady(worker: WorkerHandle): void;
  /** The slot's state changed; `death` if a worker's death was the cause. */
  onSlotChange(slot: Slot, death: WorkerDeath | null): void;
}

export interface SlotOptions {
  readonly index: number;
  readonly device: string;
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
  #leaveGate: (() => void) | null = null;
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

  get worker(): WorkerHandle | null {
    return 'worker' in this.#state ? this.#state.worker : null;
  }

  /** Workers started after the first because one died. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Calls ended here, over all workers of this slot. */
  get calls(): number {
    return this.#calls + (this.worker?.finishedCalls ?? 0);
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
    if (this.#state.name === 'closing' || this.#state.name === 'closed') return;
    this.#history = NEW_SLOT;
    this.#lastDeath = null;
    if (this.#state.name === 'live') {
      const { worker } = this.#state;
      this.#enter({ name: 'replacing', worker }, null);
      worker.retire(limits);
    } else if (this.#state.name === 'backoff' || this.#state.name === 'latched') {
      this.#cancelStart();
      this.#restartIn(0, null);
    }
  }

  /** Whether it has, or waits for, or may have again, a worker. */
  get isKept(): boolean {
    return this.#state.name !== 'closing' && this.#state.name !== 'closed';
  }

  /** The slot is given up: its worker gets no more calls, and goes once it has ended those that it holds. */
  retire(limits: RetireLimits): void {
    this.#letNobodyFollow()?.retire(limits);
  }

  /** No worker will follow the present one; ends the present one politely. */
  close(graceMs: number): void {
    this.#letNobodyFollow()?.stop(graceMs);
  }

  /** No worker will follow the present one; kills the present one. */
  kill(): void {
    if (this.#state.name !== 'closed') this.#letNobodyFollow()?.kill('stop');
  }

  #letNobodyFollow(): WorkerHandle | null {
    const { worker } = this;
    this.#cancelStart();
    this.#enter(worker === null ? { name: 'closed' } : { name: 'closing', worker }, null);
    return worker;
  }

  #queueAtGate(): void {
    // `go` may be called before `enter` returns, and a spawn may fail at once.
    const leave: { gate: () => void } = { gate: () => {} };
    this.#leaveGate = () => leave.gate();
    leave.gate = this.#options.gate.enter(this.device, () => setImmediate(() => this.#spawn()));
  }

  #leave(): void {
    this.#leaveGate?.();
    this.#leaveGate = null;
  }

  #spawn(): void {
    if (this.#state.name !== 'waiting') return; // closed meanwhile
    const { listener } = this.#options;
    try {
      const worker = this.#options.spawn({
        ...listener,
        onReady: () => {
          this.#leave();
          listener.onReady(this.worker as WorkerHandle);
        },
        onGone: (death) => this.#onGone(death),
      });
      this.#enter({ name: 'live', worker }, null);
    } catch (cause) {
      this.#onGone(neverStarted(cause)); // no process to be had just now, perhaps: tried again as after any death
    }
  }

  #onGone(death: WorkerDeath): void {
    this.#leave();
    this.#calls += death.finishedCalls;
    if (this.#state.name === 'replacing') {
      this.#restartIn(0, death);
      return;
    }
    this.#lastDeath = death;
    if (this.#state.name === 'closing') {
      this.#enter({ name: 'closed' }, death);
      return;
    }
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
    if (this.worker === null) this.#leave();
  }

  #enter(state: SlotState, death: WorkerDeath | null): void {
    this.#state = state;
    this.#options.listener.onSlotChange(this, death);
  }
}

/** Why the slot is given up: what its last worker said of itself, or how it died. */
function latchError(death: WorkerDeath, repeats: boolean): ServeError {
  const detail = death.fatal?.message ?? (death.hint === '' ? death.how : `${death.how}; ${death.hint}`);
  if (!repeats) return new ServeError('SERVE_CRASH_LOOP', undefined, { detail });
  const isInit = death.fatal?.code === 'SERVE_INIT_FAILED';
  return new ServeError(isInit ? 'SERVE_INIT_FAILED' : 'SERVE_APP_INVALID', undefined, { detail });
}
