/**
 * Types of starts, models and processes as the memory budget sees them, of what its decision rests on, and of what it says.
 * Sizes in bytes, times on the monotonic clock.
 */
import type { ServeError } from '../../protocol/errors.js';

/**
 * A start of a worker, from the moment when it comes to the spawn gate until its worker is ready or it is given up. Its slot
 * makes it, the gate and the memory budget let it go.
 */
export interface Start {
  readonly device: string;
  /** `name@version`. */
  readonly model: string;
  /** When it came to the gate. */
  readonly sinceMs: number;
  /** Whether the previous start in its slot failed. */
  readonly isRetry: boolean;
  /** Whether the present worker of its slot stays until this one is ready. */
  readonly isRenewal: boolean;
  /** Whether a worker of its slot was ready before, and is gone. */
  readonly isReplacement: boolean;
  /** Whether the last start of its slot ran out of memory, and a worker leaves for this one. */
  readonly afterLeaving: boolean;
  /** Its process; null until it was started. */
  pid: number | null;
  /** Memory that it will take of each pool, as far as that is known; null without a budget, and while it waits for memory. */
  granted: ReadonlyMap<string, number> | null;
  /** Whether the log says that it waits for memory. */
  isLogged: boolean;
  /** Whether its model was down when the gate let it go. */
  wentWhileDown: boolean;
  /** Whether its model was ready before and has no ready worker now. */
  isModelDown(): boolean;
  /** It is allowed. */
  go(): void;
  /** There will never be memory for it. */
  refuse(error: ServeError): void;
  /** It is not needed any more. */
  withdraw(): void;
}

/** Memory with a budget: `memory`, or the name of a device such as `gpu 0`. */
export interface Pool {
  readonly name: string;
  readonly limitBytes: number;
  /** Memory that workers and spare processes hold, as last read. */
  readonly ownBytes: number;
  /** As `ownBytes`, or more if less is free. */
  readonly usedBytes: number;
  /** When that reading began; -Infinity before the first. */
  readonly readAtMs: number;
  /** Since when more than the budget is used; null if it is not. */
  readonly overSinceMs: number | null;
}

/** The pool of the machine's own memory. */
export const MEMORY = 'memory';

export interface BudgetedWorker {
  /** Its process. */
  readonly id: number;
  readonly model: string;
  readonly device: string;
  /**
   * `idle`: it holds no call, and none waits for its model. `standby`: its model has as many others as it wants, and it holds
   * no call. `leaving`: it ends, or has ended and its memory is not back yet.
   */
  readonly state: 'starting' | 'standby' | 'idle' | 'busy' | 'leaving';
  /** When it was started; once it is ready, since when it is. */
  readonly sinceMs: number;
  /** When its last call ended; as `sinceMs` before the first. */
  readonly idleSinceMs: number;
}

export interface HeldWorker extends BudgetedWorker {
  /** Memory that it holds of each pool; nothing of those that are left out. */
  readonly bytes: ReadonlyMap<string, number>;
  /** Whether its memory was read within the budget since it is ready. */
  readonly isProven: boolean;
}

/** A model at this moment. */
export interface BudgetedFacts {
  readonly name: string;
  /** So many of its workers always stay: the minimum, or all that are wanted if it does not scale by itself. */
  readonly pinned: number;
  /** Number of its workers that may leave now: none while they are replaced. */
  readonly mayLeave: number;
  /** Expected time from the start of a process until its worker is ready. */
  readonly startMs: number;
  readonly queueTimeoutMs: number;
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
  /** Its workers always stay and do not fit together with others that do. `wasWell`: it had a worker within the budget before. */
  misfit(error: ServeError, wasWell: boolean): void;
}

/** Processes that may end at any time. */
export interface Expendables {
  readonly ids: readonly number[];
  end(id: number): void;
}

/** Memory that is asked for: by a start, or because more than the budget is used. */
export interface Claim {
  /** Null: more than the budget is used. */
  readonly model: string | null;
  readonly sinceMs: number;
  /** Memory that it takes of each pool that it uses; null: not known yet. */
  readonly needs: ReadonlyMap<string, number | null>;
  /**
   * `first`: its model has no worker, or fewer than it always has; busy workers leave for it when their turn is over. `extra`:
   * it has. `renewal`: a worker of its slot stays until it is ready; those of its model that stand by leave for it.
   */
  readonly kind: 'first' | 'extra' | 'renewal';
}

/** The claim of a start that waits. */
export interface StartClaim extends Claim {
  readonly start: Start;
  readonly model: string;
  /** Whether others leave for it: calls wait for its model, or its model always has so many workers. */
  readonly isNeeded: boolean;
  /** Whether it replaces a worker that was lost, and its model has no ready worker since. */
  readonly isRestore: boolean;
}

export interface BudgetFacts {
  readonly nowMs: number;
  readonly pools: readonly Pool[];
  /** Memory that the starts under way will still take, by pool. */
  readonly promised: ReadonlyMap<string, number>;
  readonly starts: readonly StartClaim[];
  readonly workers: readonly HeldWorker[];
  readonly models: readonly BudgetedFacts[];
  /** Processes that may end at any time, in the order in which they should: spares. */
  readonly expendables: readonly Pick<HeldWorker, 'id' | 'bytes'>[];
}

/** Figures of a lack of memory. */
export interface Lack {
  readonly pool: string;
  readonly limitBytes: number;
  readonly usedBytes: number;
  /** Memory that a start needs; null if that is not known, or more than the budget is used. */
  readonly needBytes: number | null;
}

/** `memory`: an idle worker leaves. `turn`: a worker leaves after its calls, because another model has waited for long enough. */
export interface LeaveWhy extends Lack {
  readonly rule: 'memory' | 'turn';
  /** The model that needs the memory; null: more than the budget is used. */
  readonly forModel: string | null;
  /** Time for which it has been idle; with `turn`, for which the other one has waited. */
  readonly ms: number;
}

/** `alone`: it needs more than the budget. `together`: the workers that always stay do. */
export interface RefuseWhy extends Lack {
  readonly rule: 'alone' | 'together';
  readonly bytes: number;
  /** The models whose workers always stay, with what they hold. */
  readonly holders: readonly Holder[];
}

export interface Holder {
  readonly model: string;
  readonly bytes: number;
}

export type Step =
  | { readonly kind: 'go'; readonly start: Start }
  | { readonly kind: 'leave'; readonly id: number; readonly why: LeaveWhy }
  | { readonly kind: 'refuseStart'; readonly start: Start; readonly why: RefuseWhy }
  | { readonly kind: 'refuseWorker'; readonly id: number; readonly why: RefuseWhy }
  /** No call has waited for it for long. */
  | { readonly kind: 'withdraw'; readonly start: Start }
  | { readonly kind: 'wait'; readonly start: Start; readonly lack: Lack };
