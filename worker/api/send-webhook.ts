/**
 * `sendWebhook` for apps. The worker registers its half on `globalThis` under a registered symbol, because an app's
 * `import 'banana-serve'` may load another instance of this module: tsx, CommonJS and a second installed copy each load
 * their own, and all of them must find the same worker.
 */
/**
 * Options of `sendWebhook`.
 * @example
 * const options: SendWebhookOptions = { retries: 5, await: true };
 */
export interface SendWebhookOptions {
  /** Time limit of one attempt in ms, 1 to 60000; 10 s by default. */
  readonly timeoutMs?: number;
  /** Attempts after the first, 0 to 10; 3 by default. */
  readonly retries?: number;
  /**
   * If true, the promise resolves when the webhook was delivered or has finally failed, otherwise as soon as the server
   * has it.
   */
  readonly await?: boolean;
}

export interface WebhookRequest extends SendWebhookOptions {
  readonly url: string | URL;
  readonly json: unknown;
}

/** The worker's half. Other copies of this package call it, so its shape must not change. */
export interface WebhookSender {
  send(request: WebhookRequest): Promise<void>;
}

const SENDER = Symbol.for('banana-serve.webhooks');

/** Registers the worker's half; called by the worker's entry. */
export function offerWebhooks(sender: WebhookSender): void {
  (globalThis as Record<symbol, unknown>)[SENDER] = sender;
}

/**
 * POSTs JSON to a URL. The server sends it, so it is delivered even if this worker dies next. Resolves once the server
 * has it, or with `{ await: true }` when it was delivered or given up. A receiver that is down, slow or refuses never
 * makes it reject: the server tries again, and logs a webhook that could not be delivered.
 * @throws TypeError if the URL is not valid, the JSON cannot be encoded or is over 16 MiB, or an option is wrong
 * @example
 * export async function inference({ notify }: { notify: string }) {
 *   await sendWebhook(notify, { state: 'begun' }, { retries: 5 });
 * }
 */
export async function sendWebhook(
  url: string | URL,
  json: unknown,
  options?: SendWebhookOptions,
): Promise<void>;
export async function sendWebhook(request: WebhookRequest): Promise<void>;
export async function sendWebhook(
  first: string | URL | WebhookRequest,
  json?: unknown,
  options: SendWebhookOptions = {},
): Promise<void> {
  const sender = (globalThis as Record<symbol, unknown>)[SENDER] as WebhookSender | undefined;
  if (sender === undefined) {
    throw new Error('sendWebhook works inside a served app: start it with `banana-serve app.ts` or serve()');
  }
  const isRequest = typeof first === 'object' && first !== null && !(first instanceof URL);
  await sender.send(isRequest ? first : { ...options, url: first, json });
}
