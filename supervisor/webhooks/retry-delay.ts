/**
 * Decides what follows an attempt: an end, or another attempt and when. It is pure.
 * With three retries the last attempt begins 21 to 27 s after the first, if the receiver fails at once and asks for
 * no pause; at the most, with an attempt's whole timeout and a Retry-After each time, it is over within 5 min.
 */
import { formatMs } from '../options/units.js';

export type Attempt =
  | { readonly kind: 'answered'; readonly status: number; readonly retryAfter: string | null }
  | { readonly kind: 'timeout'; readonly timeoutMs: number }
  | { readonly kind: 'unreachable'; readonly why: string };

export type NextStep =
  | { readonly action: 'delivered' }
  | { readonly action: 'retry'; readonly delayMs: number; readonly why: string }
  | { readonly action: 'give up'; readonly why: string };

/** The waits are 1 s, 4 s, 16 s, and 60 s from then on. */
const FIRST_DELAY_MS = 1000;
const DELAY_FACTOR = 4;

/** No longer wait than this, and a receiver that asks for more is not asked again: memory is held meanwhile. */
export const MAX_DELAY_MS = 60_000;

/** Added, never taken away: a receiver that said when is not asked earlier, and not by everybody at once. */
const JITTER = 0.25;

/** `attempts` made so far; `random` from 0 to 1; `nowMs` since the epoch, for a Retry-After that is a date. */
export function nextStep(
  attempt: Attempt,
  attempts: number,
  retries: number,
  nowMs: number,
  random: number,
): NextStep {
  if (attempt.kind === 'answered' && attempt.status >= 200 && attempt.status < 300)
    return { action: 'delivered' };
  const why = describeAttempt(attempt);
  if (!mayRetry(attempt) || attempts > retries) return { action: 'give up', why };
  const askedMs = attempt.kind === 'answered' ? parseRetryAfterMs(attempt.retryAfter, nowMs) : null;
  if (askedMs !== null && askedMs > MAX_DELAY_MS) {
    return { action: 'give up', why: `${why} and asked to be left alone for ${formatMs(askedMs)}` };
  }
  const ownMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * DELAY_FACTOR ** (attempts - 1));
  return { action: 'retry', delayMs: Math.max(ownMs, askedMs ?? 0) * (1 + JITTER * random), why };
}

/** Names the failure, as it is said after "failed with". */
export function describeAttempt(attempt: Attempt): string {
  switch (attempt.kind) {
    case 'answered':
      return attempt.status >= 300 && attempt.status < 400
        ? `status ${attempt.status}: redirects are not followed`
        : `status ${attempt.status}`;
    case 'timeout':
      return `timeout: no answer within ${formatMs(attempt.timeoutMs)}`;
    case 'unreachable':
      return `connection error: ${attempt.why}`;
  }
}

/** Seconds or an HTTP date, as ms from now; null if there is none or it is neither. */
export function parseRetryAfterMs(value: string | null, nowMs: number): number | null {
  if (value === null) return null;
  const text = value.trim();
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const atMs = /^[A-Z][a-z]{2}/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(atMs) ? null : Math.max(0, atMs - nowMs);
}

function mayRetry(attempt: Attempt): boolean {
  if (attempt.kind !== 'answered') return true;
  const { status } = attempt;
  return status === 408 || status === 429 || status >= 500;
}
