/**
 * What to do after a worker's death: past and death in, decision out. Pure.
 *
 * - A slot that was healthy gets its first restart at once; further deaths back off: 500 ms doubling to 30 s,
 *   times a random 0.5 to 1 so that slots on one device do not move together.
 * - Health returns after max(30 s, twice the init time) of ready time with at least one finished call.
 * - Only deaths before `ready`, and idle deaths with no call finished, count towards giving up. A death during a
 *   call may be the call's fault: it backs off but never gives up, so no input can take the service down.
 * - A load error that would repeat gives up at once.
 */

export interface Death {
  /** Where in its life the worker died. */
  readonly during: 'start' | 'idle' | 'call';
  /** Time it was ready. */
  readonly readyMs: number;
  readonly initMs: number;
  readonly finishedCalls: number;
  /** The same would happen again. */
  readonly permanent: boolean;
}

export interface SlotHistory {
  /** Deaths in a row without the slot becoming healthy again. */
  readonly deaths: number;
  /** Those of them that count towards giving up. */
  readonly strikes: number;
}

export type Decision =
  | { readonly action: 'restart'; readonly delayMs: number; readonly history: SlotHistory }
  | { readonly action: 'latch'; readonly history: SlotHistory };

export const NEW_SLOT: SlotHistory = { deaths: 0, strikes: 0 };

export const FIRST_DELAY_MS = 500;
export const MAX_DELAY_MS = 30_000;
export const MIN_STABLE_MS = 30_000;

/** `restartLimit`: strikes that are forgiven. `random`: from 0 to 1. */
export function afterDeath(
  history: SlotHistory,
  death: Death,
  restartLimit: number,
  random: number,
): Decision {
  const past = forgive(history, death);
  const counts = death.during === 'start' || (death.during === 'idle' && death.finishedCalls === 0);
  const next: SlotHistory = { deaths: past.deaths + 1, strikes: past.strikes + (counts ? 1 : 0) };
  if (death.permanent || (counts && next.strikes > restartLimit)) return { action: 'latch', history: next };
  const healthy = death.finishedCalls > 0 && past.deaths === 0;
  return { action: 'restart', delayMs: healthy ? 0 : backoffMs(next.deaths, random), history: next };
}

function forgive(history: SlotHistory, death: Death): SlotHistory {
  if (death.finishedCalls === 0) return history;
  const stableMs = Math.max(MIN_STABLE_MS, 2 * death.initMs);
  return death.readyMs >= stableMs ? NEW_SLOT : { ...history, strikes: 0 };
}

/** `deaths` counts the present one. */
function backoffMs(deaths: number, random: number): number {
  const limit = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (deaths - 1));
  return limit * (0.5 + random / 2);
}
