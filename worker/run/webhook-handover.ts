/**
 * The worker's half of `sendWebhook`: checks and encodes the webhook, sends it to the front, and waits for the reply.
 */
import type { Channel } from '../../protocol/wire/channel.js';
import { ServeError, protocolError } from '../../protocol/errors.js';
import {
  FIRST_WEBHOOK_REF,
  MAX_WEBHOOK_BYTES,
  MAX_WEBHOOK_RETRIES,
  MAX_WEBHOOK_TIMEOUT_MS,
} from '../../protocol/wire/limits.js';
import { DEFAULT_RETRIES, DEFAULT_TIMEOUT_MS, parseWebhookUrl } from '../../protocol/webhooks.js';
import type { WebhookSender, WebhookRequest } from '../api/send-webhook.js';
import { encodeJson } from '../values/json-encoding.js';

/** Maximum length of a URL: servers accept that much, and it fits into the head of a frame. */
const MAX_URL_CHARS = 16 * 1024;

export class WebhookHandover implements WebhookSender {
  readonly #channel: Channel;
  readonly #runningRequestId: () => string;
  readonly #waiting = new Map<number, () => void>();
  #nextRef = FIRST_WEBHOOK_REF;

  constructor(channel: Channel, runningRequestId: () => string) {
    this.#channel = channel;
    this.#runningRequestId = runningRequestId;
  }

  /** @throws TypeError if the app gave wrong arguments; nothing is sent then */
  async send(request: WebhookRequest): Promise<void> {
    const { url, timeoutMs = DEFAULT_TIMEOUT_MS, retries = DEFAULT_RETRIES } = request;
    const { href } = checkedUrl(url);
    checkWhole('timeoutMs', timeoutMs, 1, MAX_WEBHOOK_TIMEOUT_MS);
    checkWhole('retries', retries, 0, MAX_WEBHOOK_RETRIES);
    const body = encoded(request.json);
    const ref = this.#nextRef;
    this.#nextRef += 1;
    const done = new Promise<void>((resolve) => this.#waiting.set(ref, resolve));
    this.#channel.sendBody(
      {
        type: 'webhook',
        ref,
        url: href,
        contentType: 'application/json',
        requestId: this.#runningRequestId(),
        timeoutMs,
        retries,
        wait: request.await === true,
        bodyBytes: body.length,
      },
      ref,
      [body],
      body.length,
    );
    this.#channel.flush();
    await done;
  }

  /**
   * Settles the webhook when the front has taken it or is done with it; the server's log states whether it was
   * delivered. @throws SERVE_PROTOCOL
   */
  onDone(ref: number): void {
    const resolve = this.#waiting.get(ref);
    if (resolve === undefined) throw protocolError(`webhook ${ref} was not sent to the server`);
    this.#waiting.delete(ref);
    resolve();
  }
}

function checkedUrl(raw: unknown): URL {
  const url = parseWebhookUrl(raw);
  if (url.href.length <= MAX_URL_CHARS) return url;
  throw new TypeError(`the URL of a webhook has ${url.href.length} characters; ${MAX_URL_CHARS} are allowed`);
}

function checkWhole(name: string, value: number, min: number, max: number): void {
  if (Number.isInteger(value) && value >= min && value <= max) return;
  throw new TypeError(`sendWebhook: ${name} must be a whole number from ${min} to ${max}`);
}

function encoded(json: unknown): Buffer {
  if (json === undefined) throw new TypeError('sendWebhook: json is undefined; give null for no value');
  let body: Buffer;
  try {
    body = encodeJson(json);
  } catch (cause) {
    if (!(cause instanceof ServeError)) throw cause;
    throw new TypeError(cause.message.replace('The output', 'sendWebhook: the value'), { cause });
  }
  if (body.length <= MAX_WEBHOOK_BYTES) return body;
  throw new TypeError(`sendWebhook: the JSON has ${body.length} bytes; ${MAX_WEBHOOK_BYTES} are allowed`);
}
