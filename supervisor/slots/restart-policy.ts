/**
 * Decides what follows a worker's death: past and death in, decision out. Pure.
 *
 * - Backoff is for starts that fail, never for inputs that kill. A worker that died during a call, or idle with a
 *   call finished (an input may kill a moment after its answer), is replaced at once, every time, whatever happened
 *   before: a client that sends such inputs must not keep the calls of others waiting.
 * - A death before `ready`, or idle with no call finished, is a failed start. Failed starts in a row wait 500 ms,
 *   doubled up to a minute, times a random 0.5 to 1, so that slots on one device do not start together.
 * - Once a worker was ready, starts go on for ever, whatever the error: what the app needs may come back. More failed ones
 *   in a row than `restartLimit` only make the slot `failing`.
 * - Before that, and where a change of the code starts it again, more of them latch the slot. So does a load error that would
 *   repeat, at once, and before any worker was ready an error that import or `init` threw twice in a row, unless the network
 *   or a scarce resource was to blame.
 * - A worker that never fits into the memory budget latches its slot always: no start helps before one of the two changes.
 */

export interface Death {
  /** The activity of the worker when it died. */
  readonly during: 'start' | 'idle' | 'call';
  readonly finishedCalls: number;
  /** Whether the next worker would die of the same cause, unless something outside the server changes. */
  readonly permanent: boolean;
  /** Whether it needs more memory than the budget has. */
  readonly neverFits: boolean;
  /** Text of the error that import or `init` threw, to compare; null if they threw none, or one that may not repeat. */
  readonly thrown: string | null;
}

export interface SlotHistory {
  /** Failed starts in a row: no worker between them finished a call or died during one. */
  readonly failedStarts: number;
  /** {@link Death.thrown} of the last of them. */
  readonly thrown: string | null;
}

export interface RestartRules {
  /** Failed starts in a row after which a worker is started again. */
  readonly restartLimit: number;
  /** Whether a worker was ready before, in any slot. */
  readonly everReady: boolean;
  /** Whether code that cannot start waits for its next change (`--watch`). */
  readonly awaitsChange: boolean;
}

export type Decision =
  /** `isFailing`: more starts in a row have failed than the limit allows. */
  | {
      readonly action: 'restart';
      readonly delayMs: number;
      readonly isFailing: boolean;
      readonly history: SlotHistory;
    }
  /** `repeats`: the next start would fail in the same way. */
  | { readonly action: 'latch'; readonly repeats: boolean; readonly history: SlotHistory };

export const NEW_SLOT: SlotHistory = { failedStarts: 0, thrown: null };

export const FIRST_DELAY_MS = 500;
export const MAX_DELAY_MS = 60_000;

/** `random`: from 0 to 1. */
export function afterDeath(past: SlotHistory, death: Death, rules: RestartRules, random: number): Decision {
  const history = { failedStarts: past.failedStarts + 1, thrown: death.thrown };
  const { restartLimit, everReady, awaitsChange } = rules;
  const isSameAgain = !everReady && death.thrown !== null && death.thrown === past.thrown;
  const goesOn = everReady && !awaitsChange;
  const repeats = death.neverFits || isSameAgain || (death.permanent && !goesOn);
  if (repeats) return { action: 'latch', repeats, history };
  if (!death.permanent && !isFailedStart(death))
    return { action: 'restart', delayMs: 0, isFailing: false, history: NEW_SLOT };
  const isFailing = history.failedStarts > restartLimit;
  if (isFailing && !goesOn) return { action: 'latch', repeats, history };
  return { action: 'restart', delayMs: backoffMs(history.failedStarts, random), isFailing, history };
}

function isFailedStart({ during, finishedCalls }: Death): boolean {
  return during === 'start' || (during === 'idle' && finishedCalls === 0);
}

/** `failedStarts` counts the present one. */
function backoffMs(failedStarts: number, random: number): number {
  const limit = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (failedStarts - 1));
  return limit * (0.5 + random / 2);
}
