/** Types of models and spare processes as the memory budget sees them, and of what it shows in `/status`. */
import type { ServeError } from '../../protocol/errors.js';
import type { HeldWorker, HoldingModel, LeaveWhy } from './facts.js';
import type { StartCost } from './start-costs.js';

export interface BudgetedWorker extends Pick<HeldWorker, 'id' | 'state' | 'sinceMs' | 'idleSinceMs'> {
  readonly device: string;
}

/** A model at this moment. */
export interface BudgetedFacts extends Omit<HoldingModel, 'name'> {
  /** Number of workers that it should have now, without those that stand by. */
  readonly wanted: number;
  /** Whether calls, jobs or orders wait for a worker. */
  readonly hasCallers: boolean;
  /** Every process of its slots. */
  readonly workers: readonly BudgetedWorker[];
}

export interface BudgetedModel {
  /** `name@version`. */
  readonly name: string;
  facts(nowMs: number): BudgetedFacts;
  /** Memory was read anew: there may be some for a worker that stands by. */
  memoryRead(): void;
  /** The worker ends what it holds and goes. */
  sendAway(id: number, why: LeaveWhy): void;
  /** The worker is ended, and its slot starts no other. */
  refuse(id: number, error: ServeError): void;
}

/** Processes that may end at any time. */
export interface Expendables {
  readonly ids: readonly number[];
  end(id: number): void;
}

/** The budgets in `/status`. */
export interface BudgetStatus {
  readonly pools: readonly {
    /** `memory`, or the device, such as `gpu 0`. */
    readonly name: string;
    readonly budgetBytes: number;
    readonly usedBytes: number;
  }[];
  /** Memory that a start of each model was found to take. */
  readonly startCosts: readonly StartCost[];
  /** Starts that wait for memory, the one that has waited longest first. */
  readonly waiting: readonly {
    readonly model: string;
    readonly waitedMs: number;
    readonly pool: string;
    /** Null: not known yet. */
    readonly needBytes: number | null;
    /** The models that hold the memory, the largest first. */
    readonly holders: readonly { readonly model: string; readonly bytes: number }[];
  }[];
  /** Workers that have left for memory so far, by rule, and spare processes. */
  readonly sentAway: { readonly memory: number; readonly turn: number; readonly spares: number };
}
