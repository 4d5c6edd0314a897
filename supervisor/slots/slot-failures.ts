/**
 * Counts the failed starts of a slot in a row. The slot reports each death here, and then starts the next worker, or gives
 * up.
 */
import type { ServeError } from '../../protocol/errors.js';
import { thrownAtStart, type WorkerDeath } from '../processes/worker-death.js';
import { NEW_SLOT, afterDeath, type RestartRules, type SlotHistory } from './restart-policy.js';
import { failingError, lackedMemory, latchError } from './start-error.js';

export type NextStart =
  | { readonly action: 'restart'; readonly delayMs: number }
  | { readonly action: 'latch'; readonly error: ServeError; readonly neverFits: boolean };

const AT_ONCE: NextStart = { action: 'restart', delayMs: 0 };

export class SlotFailures {
  readonly #rules: () => RestartRules;
  readonly #makesRoom: () => boolean;
  #history: SlotHistory = NEW_SLOT;
  #failing: ServeError | null = null;
  #isSecondTry = false;
  /** The last death of a worker since the slot last started again. */
  lastDeath: WorkerDeath | null = null;

  /** `makesRoom`: sends an idle worker of another model away; false if there is none. */
  constructor(rules: () => RestartRules, makesRoom: () => boolean) {
    this.#rules = rules;
    this.#makesRoom = makesRoom;
  }

  /** The error of the last start, if more in a row have failed than allowed and none was ready since. */
  get failing(): ServeError | null {
    return this.#failing;
  }

  /** Whether the last start failed. */
  get hasFailed(): boolean {
    return this.#history.failedStarts > 0;
  }

  /** Whether the last start ran out of memory, and does not count as failed since another worker leaves for the next one. */
  get isSecondTry(): boolean {
    return this.#isSecondTry;
  }

  /** The slot starts again as a new one. */
  forget(): void {
    this.startAfresh();
    this.lastDeath = null;
  }

  /** Starts that failed before do not count for the next one. */
  startAfresh(): void {
    this.#history = NEW_SLOT;
    this.#failing = null;
  }

  onReady(): void {
    this.#isSecondTry = false;
    this.#failing = null;
  }

  /** A worker of the slot has died, and no other one has its place. */
  onDeath(death: WorkerDeath): NextStart {
    if (this.#mayTryAgain(death)) {
      this.#isSecondTry = true;
      return AT_ONCE;
    }
    this.#isSecondTry = false;
    this.lastDeath = death;
    if (death.inWarmUp === true && !death.wanted) return AT_ONCE; // the next start does without: no failure of the app
    const { permanent = false } = death.fatal ?? {};
    const neverFits = death.cause === 'over the memory budget';
    const cause = { ...death, permanent, neverFits, thrown: thrownAtStart(death) };
    const decision = afterDeath(this.#history, cause, this.#rules(), Math.random());
    this.#history = decision.history;
    if (decision.action === 'latch')
      return { action: 'latch', error: latchError(death, decision.repeats), neverFits };
    this.#failing = decision.isFailing ? failingError(death) : null;
    return decision;
  }

  /** Whether it ran out of memory while it started, for the first time in a row, and another worker has left for the next try. */
  #mayTryAgain(death: WorkerDeath): boolean {
    const isKilled = death.exit.signal === 'SIGKILL' && death.cause === 'signal'; // likely by the kernel
    if (this.#isSecondTry || death.during !== 'start' || !(isKilled || lackedMemory(death))) return false;
    return this.#makesRoom();
  }
}
