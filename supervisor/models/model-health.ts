/**
 * Whether a model can serve: what its callers are told, and those of them that wait.
 * Before: the model says what has happened. After: dispatcher and dialects ask before they take a call.
 */
import { shuttingDown, type ServeError } from '../../protocol/errors.js';
import type { Routes } from './app-description.js';
import {
  healthOf,
  noWorkerError,
  isSettled,
  latchErrors,
  noneWantedError,
  readyInMs,
  type Health,
} from './slot-summary.js';
import type { SlotSet } from './slot-set.js';
import { Waiters } from './waiters.js';

/** The outcome of a change of the number of workers. */
export interface Settled {
  readonly wanted: number;
  readonly ready: number;
  /** Why a slot was given up; null if none was. */
  readonly error: ServeError | null;
}

export class ModelHealth {
  readonly #slots: SlotSet;
  readonly #routes: () => Routes | null;
  readonly #untilReady = new Waiters(() => this.#findReady());
  readonly #untilLoaded = new Waiters(() => this.#findRoutes());
  readonly #untilSettled = new Waiters(() => this.#findSettled());
  readonly #untilOneGaveUp = new Waiters(() => this.#findOneGivenUp());
  readonly #others = new Set<Waiters<true>>();
  #wanted = 0;
  #drain: 'no' | 'announced' | 'refusing' = 'no';
  #rejection: ServeError | null = null;
  #latched: ServeError | null = null;
  #hasServed = false;
  #lastInitMs: number | null = null;
  #firstReadyAtMs: number | null = null;

  constructor(slots: SlotSet, routes: () => Routes | null) {
    this.#slots = slots;
    this.#routes = routes;
  }

  get health(): Health {
    return healthOf({
      isDraining: this.#drain !== 'no',
      readyWorkers: this.#slots.ready.length,
      isLatched: this.#latched !== null,
      hasServed: this.#hasServed,
      hasLost: this.#slots.all.some((slot) => slot.lastDeath !== null),
    });
  }

  /** How many workers it shall have; 0: calls are refused. */
  get wanted(): number {
    return this.#wanted;
  }

  /** Every slot has given up. */
  get isLatched(): boolean {
    return this.#latched !== null;
  }

  /** A worker of the present code was ready. */
  get hasServed(): boolean {
    return this.#hasServed;
  }

  get firstReadyAtMs(): number | null {
    return this.#firstReadyAtMs;
  }

  get isDraining(): boolean {
    return this.#drain !== 'no';
  }

  /** New calls are not taken because somebody said so; those that were taken go on. */
  get refusesCalls(): boolean {
    return this.#drain === 'refusing' || this.#wanted === 0;
  }

  /** Why a new call is not taken; null if it is. */
  get refusal(): ServeError | null {
    if (this.#drain === 'refusing') return shuttingDown();
    if (this.#rejection !== null) return this.#rejection;
    return this.#wanted === 0 ? noneWantedError() : this.noWorkerError;
  }

  /** Why no worker will ever come for a call that was taken; null if one may. */
  get noWorkerError(): ServeError | null {
    if (this.#rejection !== null) return this.#rejection;
    const isGivenUp = this.#wanted === 0 && this.#slots.kept.length === 0;
    if (isGivenUp && this.#drain !== 'refusing') return noneWantedError();
    return noWorkerError(this.#slots.all, this.#latched !== null);
  }

  /** When a first worker may be ready; null if none is to come. A guess. */
  predictReadyMs(): number | null {
    return readyInMs(this.#slots.all, this.#lastInitMs, performance.now());
  }

  /** It shall have so many workers, and may hope again. */
  want(count: number): void {
    this.#wanted = count;
    this.#latched = null;
    this.wake();
  }

  /** The code has changed: what was true of its workers is not known of the next ones. */
  forgetServing(): void {
    this.#hasServed = false;
    this.#latched = null;
  }

  announceDrain(): void {
    if (this.#drain === 'no') this.#drain = 'announced';
  }

  refuseCalls(): void {
    this.#drain = 'refusing';
    this.wake();
  }

  /** New calls, and those that were taken and are not in line yet, are refused with this error from now on. */
  rejectCalls(error: ServeError): void {
    this.#rejection = error;
    this.wake();
  }

  /** Returns whether it is the first worker of all. */
  onReady(initMs: number): boolean {
    this.#lastInitMs = initMs;
    this.#hasServed = true;
    if (this.#firstReadyAtMs !== null) return false;
    this.#firstReadyAtMs = performance.now();
    return true;
  }

  /** Returns the error of the slot that was the last to give up, if now all have; else null. */
  latchIfAllGaveUp(): ServeError | null {
    const { kept } = this.#slots;
    const errors = latchErrors(kept);
    const error = errors.at(-1);
    if (this.#latched !== null || error === undefined || errors.length < kept.length) return null;
    this.#latched = error;
    this.wake();
    return error;
  }

  /** Resolves once a worker is ready, or when `givenUp` does. @throws SERVE_NOT_READY, SERVE_SHUTTING_DOWN */
  async whenReady(givenUp: Promise<unknown>): Promise<void> {
    await this.#untilReady.wait(givenUp);
  }

  /** The routes, once the app is loaded; null when `givenUp` settles first. @throws SERVE_NOT_READY, SERVE_SHUTTING_DOWN */
  whenLoaded(givenUp: Promise<unknown>): Promise<Routes | null> {
    return this.#untilLoaded.wait(givenUp);
  }

  /** Resolves once there are as many slots as wanted, each with a ready worker or given up, and no other worker. @throws SERVE_SHUTTING_DOWN */
  async whenSettled(): Promise<Settled> {
    return (await this.#untilSettled.wait(never())) as Settled;
  }

  /** Why a slot has given up, once one has of those that are wanted; null when `givenUp` settles first. */
  whenOneGaveUp(givenUp: Promise<unknown>): Promise<ServeError | null> {
    return this.#untilOneGaveUp.wait(givenUp);
  }

  /** Resolves once this is true; it is asked at every change. */
  async until(isTrue: () => boolean): Promise<void> {
    const waiters = new Waiters(() => isTrue() || null);
    this.#others.add(waiters);
    await waiters.wait(never());
    this.#others.delete(waiters);
  }

  /** Something has changed for those who wait. */
  wake(): void {
    this.#untilReady.wake();
    this.#untilLoaded.wake();
    this.#untilSettled.wake();
    this.#untilOneGaveUp.wake();
    for (const waiters of this.#others) waiters.wake();
  }

  #findOneGivenUp(): ServeError | null {
    return this.#wanted === 0 ? null : (latchErrors(this.#slots.kept)[0] ?? null);
  }

  #findReady(): true | null {
    const { refusal } = this;
    if (refusal !== null) throw refusal;
    return this.#slots.ready.length > 0 ? true : null;
  }

  #findRoutes(): Routes | null {
    const error = this.noWorkerError;
    if (error !== null) throw error;
    return this.#routes();
  }

  #findSettled(): Settled | null {
    if (this.#drain === 'refusing') throw shuttingDown();
    const { all, kept, ready } = this.#slots;
    if (kept.length !== this.#wanted || !all.every(isSettled)) return null;
    return { wanted: this.#wanted, ready: ready.length, error: latchErrors(kept)[0] ?? null };
  }
}

/** One for each who waits: what waits for a promise stays as long as that does. */
function never(): Promise<never> {
  return new Promise(() => {});
}
