/** One model, as the memory budget sees it: the states of its workers, which of them may leave, and how one leaves. */
import type { ServeError } from '../../protocol/errors.js';
import type { BudgetedFacts, BudgetedModel, BudgetedWorker, LeaveWhy } from '../budget/facts.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import { startPhase } from '../processes/worker-lifecycle.js';
import type { Slot } from '../slots/slot.js';
import type { ModelCore } from './model-resources.js';
import type { Sizing } from './sizing.js';

/** Expected start of a model that was never started. */
const UNKNOWN_START_MS = 1000;

export class ModelInBudget implements BudgetedModel {
  readonly #model: ModelCore;
  readonly #sizing: Sizing;

  constructor(model: ModelCore, sizing: Sizing) {
    this.#model = model;
    this.#sizing = sizing;
  }

  get name(): string {
    const { name, version } = this.#model.generations.newest.spec;
    return `${name}@${version}`;
  }

  facts(nowMs: number): BudgetedFacts {
    const { crew, generations } = this.#model;
    const { bounds, demand, isReplacing } = this.#sizing;
    const hasCallers = this.#hasCallers;
    const workers = crew.all.flatMap((slot) =>
      slot.workers.map((worker) => this.#worker(slot, worker, hasCallers, nowMs)),
    );
    const ready = workers.filter(({ state }) => state === 'idle' || state === 'busy');
    const mayLeave = bounds === null || isReplacing ? 0 : ready.length - bounds.min;
    return {
      name: this.name,
      pinned: bounds?.min ?? crew.wanted,
      wanted: crew.wanted,
      mayLeave: Math.max(0, mayLeave),
      startMs: demand.startMs === 0 ? UNKNOWN_START_MS : demand.startMs,
      queueTimeoutMs: generations.inForce.options.queueTimeout,
      hasCallers,
      workers,
    };
  }

  memoryRead(): void {
    this.#sizing.keepStandbys();
  }

  sendAway(id: number, why: LeaveWhy): void {
    const slot = this.#slotOf(id);
    if (slot !== null) this.#sizing.sendAway(slot, why);
  }

  refuse(id: number, error: ServeError): void {
    this.#slotOf(id)
      ?.workers.find(({ pid }) => pid === id)
      ?.refuse(error);
  }

  misfit(error: ServeError, wasWell: boolean): void {
    this.#model.tell({ type: 'misfit', error, wasWell });
  }

  #slotOf(id: number): Slot | null {
    return this.#model.crew.all.find(({ workers }) => workers.some(({ pid }) => pid === id)) ?? null;
  }

  #worker(slot: Slot, worker: WorkerHandle, hasCallers: boolean, nowMs: number): BudgetedWorker {
    const { pid: id, stateMs } = worker;
    const sinceMs = nowMs - stateMs;
    const idleSinceMs = Math.max(sinceMs, worker.lastCallMs);
    const state = this.#stateOf(slot, worker, hasCallers);
    return { id, model: this.name, device: slot.device, state, sinceMs, idleSinceMs };
  }

  /** One that is replaced is busy: it is never sent away, and its successor needs memory of its own. */
  #stateOf(slot: Slot, worker: WorkerHandle, hasCallers: boolean): BudgetedWorker['state'] {
    if (startPhase(worker.state) !== null) return slot.isKept ? 'starting' : 'leaving';
    if (worker.state !== 'ready' || !slot.isKept) return 'leaving';
    const isFree = this.#model.dispatcher.isFree(worker);
    if (!isFree || slot.state.name !== 'live' || slot.workers.length > 1) return 'busy';
    if (this.#model.crew.standbys.includes(slot)) return 'standby';
    return hasCallers ? 'busy' : 'idle';
  }

  get #hasCallers(): boolean {
    const { dispatcher } = this.#model;
    return this.#sizing.demand.waiting + dispatcher.arriving > 0;
  }
}
