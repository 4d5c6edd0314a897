/**
 * Webhooks that a store keeps and for which there is no room among those that are owed: they wait, in order for each receiver,
 * and without their bodies. A receiver that is down holds up no other.
 */
import type { Webhooks } from '../webhooks/webhooks.js';

export interface WaitingWebhook {
  readonly url: string;
  readonly bytes: number;
  /** Reads its body and sends it, or lets it wait again. Rejects if the body cannot be read now. */
  send(): Promise<void>;
}

export class WaitingWebhooks {
  readonly #webhooks: Pick<Webhooks, 'hasRoomFor'>;
  /** By the origins of their receivers; a line without webhooks is removed. */
  readonly #lines = new Map<string, WaitingWebhook[]>();
  #count = 0;
  #isSending = false;
  #isClosed = false;

  constructor(webhooks: Pick<Webhooks, 'hasRoomFor'>) {
    this.#webhooks = webhooks;
  }

  get count(): number {
    return this.#count;
  }

  add(webhook: WaitingWebhook): void {
    const { origin } = new URL(webhook.url);
    const line = this.#lines.get(origin);
    if (line === undefined) this.#lines.set(origin, [webhook]);
    else line.push(webhook);
    this.#count += 1;
  }

  /** Sends those for which there is room by now, one after the other. Never rejects. */
  async send(): Promise<void> {
    if (this.#isSending) return; // it looks again after each
    this.#isSending = true;
    for (let next = this.#next(); next !== null; next = this.#next()) {
      try {
        await next.send();
      } catch {
        this.add(next); // the store fails, and has said so
        break;
      }
    }
    this.#isSending = false;
  }

  close(): void {
    this.#isClosed = true;
  }

  /** Removes one for which there is room. */
  #next(): WaitingWebhook | null {
    if (this.#isClosed) return null;
    for (const [origin, line] of this.#lines) {
      const [first] = line;
      if (first === undefined || !this.#webhooks.hasRoomFor(first.url, first.bytes)) continue;
      line.shift();
      if (line.length === 0) this.#lines.delete(origin);
      this.#count -= 1;
      return first;
    }
    return null;
  }
}
