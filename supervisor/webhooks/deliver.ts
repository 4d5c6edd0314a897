/**
 * Makes one attempt to deliver a webhook, and decides what follows it. Only this file of the room imports undici, and only with
 * the first attempt: loading takes 0.1 s, and most servers send no webhooks.
 */
import { startLimit, type LimitTimer } from '../machine/limit-timer.js';
import { LookUp, connectionFailure } from '../machine/look-up.js';
import { formatMs } from '../options/units.js';

/** Limit of an answer's body, which is read so that the connection can be reused; a longer body cuts the connection. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** The answer to an attempt, or in words why there is none. */
export type Attempt =
  | { readonly status: number; readonly retryAfter: string | null }
  | { readonly status: null; readonly why: string };

export class HttpDelivery {
  readonly #lookUp = new LookUp();
  #client: ReturnType<typeof connect> | null = null;

  /** Never rejects. Takes at most `timeoutMs`, from the connection to the end of the answer. */
  async attempt(
    url: URL,
    headers: Readonly<Record<string, string>>,
    body: Uint8Array,
    timeoutMs: number,
  ): Promise<Attempt> {
    let timer: LimitTimer | undefined;
    const timeout = new AbortController();
    try {
      const { request: post, agent } = await (this.#client ??= connect(this.#lookUp));
      timer = startLimit(timeoutMs, () => timeout.abort());
      const answer = await post(withoutCredentials(url), {
        method: 'POST',
        headers: { ...authorization(url), ...headers },
        body,
        dispatcher: agent,
        signal: timeout.signal,
        // The signal is the only limit.
        headersTimeout: 0,
        bodyTimeout: 0,
      });
      const after = answer.headers['retry-after'];
      // The status decides; a slow, endless or broken body does not matter.
      await answer.body.dump({ limit: MAX_ANSWER_BYTES, signal: timeout.signal }).catch(() => {});
      return { status: answer.statusCode, retryAfter: (Array.isArray(after) ? after[0] : after) ?? null };
    } catch (thrown) {
      const why = timeout.signal.aborted
        ? `timeout: no answer within ${formatMs(timeoutMs)}`
        : `connection error: ${connectionFailure(thrown)}`;
      return { status: null, why };
    } finally {
      timer?.stop();
    }
  }

  /** Cuts every connection, which ends running attempts. */
  close(): void {
    this.#lookUp.close();
    this.#client?.then(({ agent }) => agent.destroy()).catch(() => {});
  }
}

async function connect({ lookup }: LookUp) {
  const { Agent, request } = await import('undici');
  const agent = new Agent({ keepAliveTimeout: 4000, keepAliveMaxTimeout: 10_000, connect: { lookup } });
  return { request, agent };
}

function withoutCredentials(url: URL): URL {
  if (url.username === '' && url.password === '') return url;
  const bare = new URL(url);
  bare.username = '';
  bare.password = '';
  return bare;
}

function authorization({ username, password }: URL): Record<string, string> {
  if (username === '' && password === '') return {};
  const pair = `${decoded(username)}:${decoded(password)}`;
  return { authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a literal percent sign
  }
}

/** The delays are 1 s, 4 s, 16 s, and then 60 s. */
const FIRST_DELAY_MS = 1000;
const DELAY_FACTOR = 4;

/** Longest delay; a receiver that asks for more gets no retry, because the body is kept in memory meanwhile. */
const MAX_DELAY_MS = 60_000;

/** Share of the delay that is added at random: retries are spread, and never come before a Retry-After. */
const JITTER = 0.25;

/**
 * Decides what follows an attempt: the end, or a retry and its delay. Pure. `attempts` made so far; `random` from 0 to 1;
 * `nowMs` since the epoch, for a Retry-After that is a date.
 *
 * With three retries the last attempt begins 21 to 27 s after the first if the receiver fails at once without a
 * Retry-After; in the worst case, with the full timeout and a Retry-After each time, it ends within 5 min.
 */
export function nextStep(attempt: Attempt, attempts: number, retries: number, nowMs: number, random: number) {
  const { status } = attempt;
  if (status !== null && status >= 200 && status < 300) return { action: 'delivered' } as const;
  const why = status === null ? attempt.why : statusText(status);
  const mayRetry = status === null || status === 408 || status === 429 || status >= 500;
  if (!mayRetry || attempts > retries) return { action: 'give up', why } as const;
  const askedMs = status === null ? null : parseRetryAfterMs(attempt.retryAfter, nowMs);
  if (askedMs !== null && askedMs > MAX_DELAY_MS)
    return { action: 'give up', why: `${why} and asked to wait ${formatMs(askedMs)}` } as const;
  const ownMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * DELAY_FACTOR ** (attempts - 1));
  const delayMs = Math.max(ownMs, askedMs ?? 0) * (1 + JITTER * random);
  return { action: 'retry', delayMs, why } as const;
}

function statusText(status: number): string {
  return `status ${status}${status >= 300 && status < 400 ? ': redirects are not followed' : ''}`;
}

/** Parses seconds or an HTTP date to ms from now; null if the value is absent or neither. */
export function parseRetryAfterMs(value: string | null, nowMs: number): number | null {
  if (value === null) return null;
  const text = value.trim();
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const atMs = /^[A-Z][a-z]{2}/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(atMs) ? null : Math.max(0, atMs - nowMs);
}
