/** One model, as the memory budget sees it: the states of its workers, which of them may leave, and how one leaves. */
import type { ServeError } from '../../protocol/errors.js';
import type { BudgetedFacts, BudgetedModel, BudgetedWorker } from '../budget/budgeted.js';
import type { LeaveWhy } from '../budget/facts.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import { startPhase } from '../processes/worker-lifecycle.js';
import type { Slot } from '../slots/slot.js';
import type { ModelParts } from './model-parts.js';
import type { Scaler } from './scaler.js';

/** Expected start of a model that was never started. */
const UNKNOWN_START_MS = 1000;

export class ModelInBudget implements BudgetedModel {
  readonly #model: ModelParts;
  readonly #scaler: Scaler;

  constructor(model: ModelParts, scaler: Scaler) {
    this.#model = model;
    this.#scaler = scaler;
  }

  get name(): string {
    const { name, version } = this.#model.generations.newest.spec;
    return `${name}@${version}`;
  }

  facts(nowMs: number): BudgetedFacts {
    const { slots, generations, health } = this.#model;
    const { bounds, startMs } = this.#scaler;
    const { kept } = slots;
    const hasCallers = this.#hasCallers;
    const mayLeave = bounds === null || this.#model.isReplacing() ? 0 : kept.length - bounds.min;
    return {
      pinned: bounds?.min ?? Infinity,
      least: bounds?.min ?? Infinity,
      mayLeave: health.isDraining ? 0 : Math.max(0, mayLeave),
      startMs: startMs === 0 ? UNKNOWN_START_MS : startMs,
      queueTimeoutMs: generations.inForce.options.queueTimeout,
      hasCallers,
      workers: slots.all.flatMap((slot) =>
        slot.workers.map((worker) => this.#worker(slot, worker, hasCallers, nowMs)),
      ),
    };
  }

  sendAway(id: number, why: LeaveWhy): void {
    const slot = this.#slotOf(id);
    if (slot !== null) this.#scaler.sendAway(slot, why);
  }

  refuse(id: number, error: ServeError): void {
    this.#slotOf(id)
      ?.workers.find(({ pid }) => pid === id)
      ?.refuse(error);
  }

  #slotOf(id: number): Slot | null {
    return this.#model.slots.all.find(({ workers }) => workers.some(({ pid }) => pid === id)) ?? null;
  }

  #worker(slot: Slot, worker: WorkerHandle, hasCallers: boolean, nowMs: number): BudgetedWorker {
    const { pid: id, stateMs } = worker;
    const sinceMs = nowMs - stateMs;
    const idleSinceMs = worker.lastCallAtMs ?? sinceMs;
    return { id, device: slot.device, state: this.#stateOf(slot, worker, hasCallers), sinceMs, idleSinceMs };
  }

  /** One that is replaced is busy: it is never sent away, and its successor needs memory of its own. */
  #stateOf(slot: Slot, worker: WorkerHandle, hasCallers: boolean): BudgetedWorker['state'] {
    if (startPhase(worker.state) !== null) return slot.isKept ? 'starting' : 'leaving';
    if (worker.state !== 'ready' || !slot.isKept) return 'leaving';
    const isFree = this.#model.dispatcher.isFree(worker) && !hasCallers;
    return isFree && slot.state.name === 'live' && slot.workers.length === 1 ? 'idle' : 'busy';
  }

  get #hasCallers(): boolean {
    const { dispatcher } = this.#model;
    return dispatcher.queued + dispatcher.arriving + this.#scaler.waitingOrders > 0;
  }
}
