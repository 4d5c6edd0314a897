/**
 * Types of models and processes as the memory budget sees them, of what its decision rests on, and of what it says. Sizes in
 * bytes, times on the monotonic clock.
 */
import type { ServeError } from '../../protocol/errors.js';

/** Bytes in each pool, by the name of the pool; nothing in those that are left out. */
export type BytesByPool = ReadonlyMap<string, number>;

/** Memory with a budget: `memory`, or the name of a device such as `gpu 0`. */
export interface Pool {
  readonly name: string;
  readonly limitBytes: number;
  /** In use by all workers and spare processes, as last read. */
  readonly usedBytes: number;
  /** When that reading began; -Infinity before the first. */
  readonly readAtMs: number;
  /** Since when more than the budget is used; null if it is not. */
  readonly overSinceMs: number | null;
}

export interface HeldWorker {
  /** Its process. */
  readonly id: number;
  readonly model: string;
  readonly bytes: BytesByPool;
  /**
   * `idle`: it holds no call, and none waits for its model. `standby`: its model has as many others as it wants, and it holds
   * no call. `leaving`: it ends, or has ended and its memory is not back yet.
   */
  readonly state: 'starting' | 'standby' | 'idle' | 'busy' | 'leaving';
  /** When it was started; once it is ready, since when it is. */
  readonly sinceMs: number;
  /** When its last call ended; as `sinceMs` before the first. */
  readonly idleSinceMs: number;
  /** Whether its memory was read within the budget since it is ready. */
  readonly isProven: boolean;
}

export interface HoldingModel {
  readonly name: string;
  /** So many of its workers always stay: the minimum, or all that are wanted if it does not scale by itself. */
  readonly pinned: number;
  /** Number of its workers that may leave now: none while they are replaced. */
  readonly mayLeave: number;
  /** Expected time from the start of a process until its worker is ready. */
  readonly startMs: number;
  readonly queueTimeoutMs: number;
}

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
  /** Its workers always stay and do not fit together with others that do. `wasWell`: it had a worker within the budget before. */
  misfit(error: ServeError, wasWell: boolean): void;
}

/** Processes that may end at any time. */
export interface Expendables {
  readonly ids: readonly number[];
  end(id: number): void;
}

/** A start that waits for memory. */
export interface WaitingStart<S> {
  readonly start: S;
  readonly model: string;
  readonly sinceMs: number;
  /** Memory that it takes of each pool that it uses; null: not known yet. */
  readonly needs: ReadonlyMap<string, number | null>;
  /** `first`: its model has no worker, or fewer than it always has. `extra`: it has. `renewal`: a worker of its slot stays until it is ready. */
  readonly kind: 'first' | 'extra' | 'renewal';
  /** Whether others leave for it: calls wait for its model, or its model always has so many workers. */
  readonly isNeeded: boolean;
  /** Whether it replaces a worker that was lost, and its model has no ready worker since. */
  readonly isRestore: boolean;
  /** Whether it waits for every worker that is leaving: the last start in its slot ran out of memory. */
  readonly afterLeaving: boolean;
}

export interface BudgetFacts<S> {
  readonly nowMs: number;
  readonly pools: readonly Pool[];
  /** Memory that the starts under way will still take, by pool. */
  readonly promised: BytesByPool;
  readonly starts: readonly WaitingStart<S>[];
  readonly workers: readonly HeldWorker[];
  readonly models: readonly HoldingModel[];
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

export type Step<S> =
  | { readonly kind: 'go'; readonly start: S }
  | { readonly kind: 'leave'; readonly id: number; readonly why: LeaveWhy }
  | { readonly kind: 'refuseStart'; readonly start: S; readonly why: RefuseWhy }
  | { readonly kind: 'refuseWorker'; readonly id: number; readonly why: RefuseWhy }
  /** No call has waited for it for long. */
  | { readonly kind: 'withdraw'; readonly start: S }
  | { readonly kind: 'wait'; readonly start: S; readonly lack: Lack };
