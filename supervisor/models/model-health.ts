/**
 * Decides whether a model takes calls, with which error it refuses them, and lets callers wait for a change.
 * Before: the model reports what has happened. After: the dispatcher and the dialects ask before they take a call.
 */
import { shuttingDown, type ServeError } from '../../protocol/errors.js';
import type { Crew } from './crew.js';
import type { Routes } from './generations.js';
import type { ServedState } from './model-status.js';
import { outcomeOf, type Outcome } from './outcome.js';
import {
  describeStandstill,
  failuresOf,
  findStandstill,
  isChanging,
  isSettled,
  memoryErrors,
  noneWantedError,
  readyInMs,
  refusalOf,
  type Standstill,
} from './slot-summary.js';
import { startLimit } from '../machine/limit-timer.js';

/** The fields of a model that decide readiness. */
export interface ModelPresence {
  /** Its name in the log. */
  readonly label: string;
  readonly state: ServedState;
  /** Why calls are refused, and what to do, without the app's words; null while they are not. */
  readonly problem: string | null;
  /** It is one of the first models, and was not ready yet and has not given up. */
  readonly isComingUp: boolean;
}

export class ModelHealth {
  /** Whether the model may have workers at all; if not, calls are refused, and jobs wait for another model. */
  takesCalls = false;
  /** Its scaling has left it without a worker, and no start has failed since. */
  isIdle = false;
  /** Whether a worker of the present code was ready. */
  hasServed = false;
  firstReadyAtMs: number | null = null;
  /** Why calls are refused: every slot is latched or failing. Null: they are not. */
  standstill: Standstill | null = null;
  /** Callers that wait for a change. */
  readonly changes = new Waiters();
  readonly #crew: Crew;
  readonly #routes: () => Routes | null;
  /** Whether a change of the app starts latched slots again. */
  readonly #watch: boolean;
  #drain: 'no' | 'announced' | 'refusing' = 'no';
  #rejection: ServeError | null = null;
  #lastInitMs: number | null = null;

  constructor(crew: Crew, routes: () => Routes | null, watch: boolean) {
    this.#crew = crew;
    this.#routes = routes;
    this.#watch = watch;
  }

  get state(): ServedState {
    if (this.isDraining) return 'draining';
    if (!this.takesCalls) return 'unloaded';
    if (this.#crew.ready.length > 0) return 'ready';
    if (this.standstill !== null) return this.standstill.state === 'failing' ? 'failing' : 'unhealthy';
    if (this.isIdle) return 'idle';
    const hasLost = this.#crew.all.some((slot) => slot.lastDeath !== null);
    return this.hasServed || hasLost ? 'unhealthy' : 'starting';
  }

  /** Says what is wrong while the model wants workers and none can start, and what to do, without the app's words; else null. */
  get problem(): string | null {
    const standstill = this.takesCalls ? this.standstill : null;
    return standstill === null ? null : describeStandstill(standstill, this.predictReadyMs(), this.#watch);
  }

  get isDraining(): boolean {
    return this.#drain !== 'no';
  }

  /** Whether new calls are refused on request; calls taken before go on. */
  get refusesCalls(): boolean {
    return this.#drain === 'refusing' || !this.takesCalls;
  }

  /** Whether jobs may wait for its workers; during a drain, the store decides. */
  get takesJobs(): boolean {
    return this.takesCalls && this.#rejection === null && this.standstill === null;
  }

  /** The error with which a new call is refused; null if it is taken. */
  get refusal(): ServeError | null {
    if (this.#drain === 'refusing') return shuttingDown();
    if (this.#rejection !== null) return this.#rejection;
    return this.takesCalls ? this.noWorkerError : noneWantedError();
  }

  /** The error of a call that was taken if no worker will come for it, or none soon; null if one may. */
  get noWorkerError(): ServeError | null {
    if (this.#rejection !== null) return this.#rejection;
    if (this.#crew.ready.length > 0) return null;
    const hasNoSlot = this.#crew.kept.length === 0;
    if (hasNoSlot && !this.takesCalls && this.#drain !== 'refusing') return noneWantedError();
    if (this.takesCalls && this.#crew.wanted === 0) return this.#crew.isClosed ? shuttingDown() : null;
    if (hasNoSlot) return shuttingDown(); // the server ends, or the model
    const { standstill } = this;
    return standstill === null ? null : refusalOf(standstill, this.predictReadyMs(), this.#watch);
  }

  /** Estimated time until a first worker is ready; null if none will come. */
  predictReadyMs(): number | null {
    return readyInMs(this.#crew.all, this.#lastInitMs, performance.now());
  }

  /** Sets the number of workers, and whether calls are taken; what failed before does not count any more. */
  want(count: number, takesCalls: boolean): void {
    this.takesCalls = takesCalls;
    this.#crew.want(count);
    if (count === 0) this.isIdle = takesCalls;
    this.standstill = null;
    this.changes.wake();
  }

  /** The code has changed: whether its workers can start is not known. */
  forgetServing(): void {
    this.hasServed = false;
    this.standstill = null;
  }

  announceDrain(): void {
    if (this.#drain === 'no') this.#drain = 'announced';
  }

  refuseCalls(): void {
    this.#drain = 'refusing';
    this.changes.wake();
  }

  /** Refuses new calls, and accepted calls that are not in line yet, with this error from now on. */
  rejectCalls(error: ServeError): void {
    this.#rejection = error;
    this.changes.wake();
  }

  /** A worker is ready. Returns whether it is the first one of the model. */
  onReady(initMs: number): boolean {
    this.#lastInitMs = initMs;
    this.hasServed = true;
    this.isIdle = false;
    if (this.firstReadyAtMs !== null) return false;
    this.firstReadyAtMs = performance.now();
    return true;
  }

  /** Called when a slot has changed. Returns what has just stopped the model; null if nothing has, or had before. */
  checkStandstill(): Standstill | null {
    const before = this.standstill;
    this.standstill = findStandstill(this.#crew.kept);
    if (this.standstill === null || this.standstill.state === before?.state) return null;
    this.changes.wake();
    return this.standstill;
  }

  /** Resolves once a worker is ready, or when `givenUp` does. @throws SERVE_NOT_READY, SERVE_SHUTTING_DOWN */
  whenReady(givenUp: Promise<unknown>): Promise<true | null> {
    return this.changes.wait(() => {
      const { refusal } = this;
      if (refusal !== null) throw refusal;
      return this.#crew.ready.length > 0 || null;
    }, givenUp);
  }

  /** The routes, once the app is loaded; null when `givenUp` settles first. @throws SERVE_NOT_READY, SERVE_SHUTTING_DOWN */
  whenLoaded(givenUp: Promise<unknown>): Promise<Routes | null> {
    return this.changes.wait(() => {
      const error = this.noWorkerError;
      if (error !== null) throw error;
      return this.#routes();
    }, givenUp);
  }

  /**
   * Resolves once as many workers as are wanted are ready, or each slot has a ready worker or is latched or failing, and
   * workers that were retired or replaced are gone. Its error is that of a slot that is not ready. @throws SERVE_SHUTTING_DOWN
   */
  async whenSettled(): Promise<Outcome> {
    return (await this.changes.wait(() => this.#findSettled())) as Outcome;
  }

  /** Resolves with the error of the first slot that is latched or failing; with null when `givenUp` settles first. */
  whenOneFails(givenUp: Promise<unknown>): Promise<ServeError | null> {
    return this.changes.wait(() => this.#findFailed(), givenUp);
  }

  /** As `whenOneFails`; also with the error of the first worker that runs out of memory while it starts. */
  whenFirstFailed(givenUp: Promise<unknown>): Promise<ServeError | null> {
    const find = (): ServeError | null =>
      this.#findFailed() ?? this.#firstThatMatters(memoryErrors(this.#crew.kept));
    return this.changes.wait(find, givenUp);
  }

  #findFailed(): ServeError | null {
    return this.takesCalls ? this.#firstThatMatters(failuresOf(this.#crew.kept)) : null;
  }

  /** Returns the first of the errors of slots; null if so many may fail, because others stand by for them. */
  #firstThatMatters(errors: readonly ServeError[]): ServeError | null {
    return errors.length > this.#crew.standbys.length ? (errors[0] ?? null) : null;
  }

  #findSettled(): Outcome | null {
    if (this.#drain === 'refusing') throw shuttingDown();
    const { all, kept, ready, wanted } = this.#crew;
    if (kept.length < all.length || kept.length < wanted || (wanted === 0 && kept.length > 0)) return null;
    if (kept.some(isChanging)) return null;
    const serving = kept.filter((slot) => slot.failure === null && isSettled(slot));
    if (serving.length < wanted && !kept.every(isSettled)) return null;
    return outcomeOf(wanted, ready.length, ready.length < wanted ? (failuresOf(kept)[0] ?? null) : null);
  }
}

/** Lets callers wait until a model has what they need: a ready worker, its routes, no call. */
export class Waiters {
  readonly #waiting = new Set<() => void>();

  /**
   * Resolves with the result of `find`, which is called at once and at every `wake`: it returns null to keep waiting, and
   * throws if waiting is in vain. Callers continue in the order in which they came. Resolves with null once `givenUp` settles.
   */
  async wait<T>(find: () => T | null, givenUp: Promise<unknown> = never()): Promise<T | null> {
    let left = false;
    void givenUp.then(() => (left = true));
    for (;;) {
      const found = find();
      if (found !== null || left) return found;
      let wake!: () => void;
      const changed = new Promise<void>((resolve) => (wake = resolve));
      this.#waiting.add(wake);
      await Promise.race([changed, givenUp]);
      this.#waiting.delete(wake);
    }
  }

  /** Calls `find` again for all who wait. */
  wake(): void {
    for (const wake of this.#waiting) wake();
  }
}

/** Returns a new promise each time: callbacks on a shared one would be kept as long as it lives. */
function never(): Promise<never> {
  return new Promise(() => {});
}

/** Resolves with true once `isQuiet` returns true, with false at `endAtMs`. Polls every 10 ms: `isQuiet` is one sum. */
export async function untilQuiet(isQuiet: () => boolean, endAtMs: number): Promise<boolean> {
  while (!isQuiet()) {
    if (performance.now() >= endAtMs) return false;
    await new Promise<void>((resolve) => startLimit(10, resolve));
  }
  return true;
}
