/**
 * When a model has no worker and refuses calls, and what it says then: to callers, in `/readyz` and in `/status`. Pure.
 */
import { ServeError, type ErrorCode } from '../../protocol/errors.js';
import { formatMs } from '../options/units.js';
import type { Slot } from '../slots/slot.js';

export interface Standstill {
  /** `latched`: no worker is started any more. `failing`: it was ready once, and its starts go on. */
  readonly state: 'latched' | 'failing';
  /** Why one of its slots has no worker. */
  readonly error: ServeError;
}

type FailedSlot = Pick<Slot, 'failure' | 'state'>;

/** Whether every slot of a model is latched or failing; null if a call may be held for one of them. `kept`: those not retired. */
export function findStandstill(kept: readonly FailedSlot[]): Standstill | null {
  const errors = failuresOf(kept);
  const error = errors.at(-1);
  if (error === undefined || errors.length < kept.length) return null;
  return { state: kept.every(({ state }) => state.name === 'latched') ? 'latched' : 'failing', error };
}

/** The errors of the slots that are latched or failing, in their order. */
export function failuresOf(slots: readonly Pick<Slot, 'failure'>[]): ServeError[] {
  return slots.flatMap(({ failure }) => failure ?? []);
}

const CAUSES: Readonly<Partial<Record<ErrorCode, string>>> = {
  SERVE_APP_INVALID: 'the app cannot be loaded',
  SERVE_INIT_FAILED: 'its init or its example fails',
  SERVE_INIT_TIMEOUT: 'its init takes longer than --init-timeout',
};
const USUAL_CAUSE = 'its workers die before they have answered a call';

/** The error of calls meanwhile. `readyInMs`: until a worker may be ready; null if none will be. */
export function refusalOf(standstill: Standstill, readyInMs: number | null, watch: boolean): ServeError {
  const waitS = standstill.state === 'latched' || readyInMs === null ? LATCHED_RETRY_S : readyInMs / 1000;
  const message = describeStandstill(standstill, readyInMs, watch);
  return new ServeError('SERVE_NOT_READY', message, { retryAfterS: Math.max(1, Math.ceil(waitS)) });
}

/** Retry-After of calls that are refused until an operator acts. */
export const LATCHED_RETRY_S = 30;

/** Says what is wrong, what follows, and what to do, without the app's words. */
export function describeStandstill(
  { state, error }: Standstill,
  readyInMs: number | null,
  watch: boolean,
): string {
  const what = `No worker of this model can start: ${CAUSES[error.code] ?? USUAL_CAUSE}.`;
  if (state === 'latched') {
    const again = watch ? 'save it' : 'start the server again or send it SIGHUP';
    return `${what} The log and /status say why; correct it, then ${again}.`;
  }
  const next = readyInMs === null ? '' : `, in ${formatMs(readyInMs)} at the earliest`;
  return `${what} The server goes on trying, and takes calls again once one starts${next}. The log and /status say why; SIGHUP tries at once.`;
}
