/**
 * Decides what follows a worker's death: past and death in, decision out. Pure.
 *
 * - Backoff is for starts that fail, never for inputs that kill. A worker that died during a call, or idle with a
 *   call finished (an input may kill a moment after its answer), is replaced at once, every time, whatever happened
 *   before: a client that sends such inputs must not keep the calls of others waiting.
 * - A death before `ready`, or idle with no call finished, is a failed start. Failed starts in a row wait 500 ms,
 *   doubled up to 30 s, times a random 0.5 to 1, so that slots on one device do not start together; more of them than
 *   `restartLimit` latch the slot.
 * - A load error that would repeat latches at once. Before any worker was ready, so does an error that import or
 *   `init` threw twice in a row, unless the network or a scarce resource was to blame.
 */

export interface Death {
  /** The activity of the worker when it died. */
  readonly during: 'start' | 'idle' | 'call';
  readonly finishedCalls: number;
  /** Whether the next worker would die of the same cause. */
  readonly permanent: boolean;
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
  /** Whether a worker with the present code was ready before, in any slot. */
  readonly everReady: boolean;
}

export type Decision =
  | { readonly action: 'restart'; readonly delayMs: number; readonly history: SlotHistory }
  /** `repeats`: the next start would fail in the same way. */
  | { readonly action: 'latch'; readonly repeats: boolean; readonly history: SlotHistory };

export const NEW_SLOT: SlotHistory = { failedStarts: 0, thrown: null };

export const FIRST_DELAY_MS = 500;
export const MAX_DELAY_MS = 30_000;

/** `random`: from 0 to 1. */
export function afterDeath(past: SlotHistory, death: Death, rules: RestartRules, random: number): Decision {
  const history = { failedStarts: past.failedStarts + 1, thrown: death.thrown };
  const isSameAgain = !rules.everReady && death.thrown !== null && death.thrown === past.thrown;
  if (death.permanent || isSameAgain) return { action: 'latch', repeats: true, history };
  if (!isFailedStart(death)) return { action: 'restart', delayMs: 0, history: NEW_SLOT };
  if (history.failedStarts > rules.restartLimit) return { action: 'latch', repeats: false, history };
  return { action: 'restart', delayMs: backoffMs(history.failedStarts, random), history };
}

function isFailedStart({ during, finishedCalls }: Death): boolean {
  return during === 'start' || (during === 'idle' && finishedCalls === 0);
}

/** `failedStarts` counts the present one. */
function backoffMs(failedStarts: number, random: number): number {
  const limit = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (failedStarts - 1));
  return limit * (0.5 + random / 2);
}
