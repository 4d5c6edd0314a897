/**
 * Makes one attempt to deliver a webhook. Only this file of the room imports undici, and only with the first attempt:
 * loading takes 0.1 s, and most servers send no webhooks.
 */
import type { Agent, request } from 'undici';
import { startLimit, type LimitTimer } from '../machine/limit-timer.js';
import { LookUp } from '../machine/look-up.js';
import type { Attempt } from './retry-delay.js';

/** Limit of an answer's body, which is read so that the connection can be reused; a longer body cuts the connection. */
const MAX_ANSWER_BYTES = 64 * 1024;

interface Client {
  readonly request: typeof request;
  readonly agent: Agent;
}

/** The part of `HttpDelivery` that tests replace. */
export type Delivery = Pick<HttpDelivery, 'attempt' | 'close'>;

export class HttpDelivery {
  readonly #lookUp = new LookUp();
  #client: Promise<Client> | null = null;
  #closed = false;

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
      const { request: post, agent } = await (this.#client ??= this.#connect());
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
      return {
        kind: 'answered',
        status: answer.statusCode,
        retryAfter: (Array.isArray(after) ? after[0] : after) ?? null,
      };
    } catch (thrown) {
      if (timeout.signal.aborted) return { kind: 'timeout', timeoutMs };
      return { kind: 'unreachable', why: describeFailure(thrown) };
    } finally {
      timer?.stop();
    }
  }

  /** Cuts every connection, which ends running attempts. */
  close(): void {
    this.#closed = true;
    this.#lookUp.close();
    this.#client?.then(({ agent }) => agent.destroy()).catch(() => {});
  }

  async #connect(): Promise<Client> {
    const { Agent, request } = await import('undici');
    const agent = new Agent({
      keepAliveTimeout: 4000,
      keepAliveMaxTimeout: 10_000,
      connect: { lookup: this.#lookUp.lookup },
    });
    if (this.#closed) await agent.destroy();
    return { request, agent };
  }
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

/** If a name has several addresses, the error has no message but a list of errors. */
function describeFailure(thrown: unknown): string {
  const { message, code, errors } = thrown as { message?: string; code?: string; errors?: Error[] };
  return message || errors?.[0]?.message || code || 'unknown';
}
