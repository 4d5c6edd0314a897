/**
 * `sendWebhook`, for apps. The worker offers its half on `globalThis` under a registered symbol, because an app's
 * `import 'banana-serve'` need not be this module's own instance: tsx, CommonJS and a second installed copy each
 * load theirs, and all of them must find the one worker they run in.
 */
export interface SendWebhookOptions {
  /** Time limit of one attempt, in ms; 10 s if left out. */
  readonly timeoutMs?: number;
  /** Attempts after the first, 0 to 10; 3 if left out. */
  readonly retries?: number;
  /** If true, the promise resolves when the webhook is delivered or has finally failed, not as soon as the server has taken it over. */
  readonly await?: boolean;
}

export interface WebhookRequest extends SendWebhookOptions {
  readonly url: string | URL;
  readonly json: unknown;
}

/** The half that the worker offers. Other copies of this package call it, so its shape must stay. */
export interface WebhookOffice {
  send(request: WebhookRequest): Promise<void>;
}

const OFFICE = Symbol.for('banana-serve.webhooks');

/** Called by the worker's entry to offer its half. */
export function offerWebhooks(office: WebhookOffice): void {
  (globalThis as Record<symbol, unknown>)[OFFICE] = office;
}

/**
 * POSTs JSON to a URL, from the server: it goes out even if this worker dies next. Resolves once the server has
 * taken it over, or with `{ await: true }` when it was delivered or given up. A receiver that is down, slow or
 * refuses never makes it reject: the server tries again, and its log says what could not be delivered.
 * @throws TypeError if the URL is none, the JSON cannot be encoded or is over 16 MiB, or an option is wrong
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
  const office = (globalThis as Record<symbol, unknown>)[OFFICE] as WebhookOffice | undefined;
  if (office === undefined) {
    throw new Error('sendWebhook works inside a served app: start it with `banana-serve app.ts` or serve()');
  }
  const isRequest = typeof first === 'object' && first !== null && !(first instanceof URL);
  await office.send(isRequest ? first : { ...options, url: first, json });
}
