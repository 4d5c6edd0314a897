/**
 * Decides what follows an attempt: the end, or a retry and its delay. Pure.
 * With three retries the last attempt begins 21 to 27 s after the first if the receiver fails at once without a
 * Retry-After; in the worst case, with the full timeout and a Retry-After each time, it ends within 5 min.
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

/** The delays are 1 s, 4 s, 16 s, and then 60 s. */
const FIRST_DELAY_MS = 1000;
const DELAY_FACTOR = 4;

/** Longest delay; a receiver that asks for more gets no retry, because the body is kept in memory meanwhile. */
export const MAX_DELAY_MS = 60_000;

/** Share of the delay that is added at random: retries are spread, and never come before a Retry-After. */
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
    return { action: 'give up', why: `${why} and asked to wait ${formatMs(askedMs)}` };
  }
  const ownMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * DELAY_FACTOR ** (attempts - 1));
  return { action: 'retry', delayMs: Math.max(ownMs, askedMs ?? 0) * (1 + JITTER * random), why };
}

/** Describes the failure, in words that follow "failed with". */
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

/** Parses seconds or an HTTP date to ms from now; null if the value is absent or neither. */
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
