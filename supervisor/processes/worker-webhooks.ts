/** Receives the webhooks of one worker: joins their bodies, and reports to the worker that they are taken, or how they ended. */
import { BodyAssembler, joinPieces } from '../../protocol/wire/body-assembler.js';
import type { Channel } from '../../protocol/wire/channel.js';
import { protocolError } from '../../protocol/errors.js';
import { MAX_WEBHOOK_BYTES } from '../../protocol/wire/limits.js';
import type { Message, WebhookOrder, WebhookOutcome } from '../../protocol/wire/messages.js';
import type { WebhookEvents } from '../webhooks/webhooks.js';
import type { WorkerEvent } from './worker-listener.js';

export class WorkerWebhooks {
  readonly #channel: Channel;
  readonly #onSent: (sent: WorkerEvent & { readonly type: 'webhook' }) => void;
  readonly #bodies = new BodyAssembler<WebhookOrder>();
  /** The webhook whose body is incomplete: at most one, so that memory is bounded. */
  #unfinished: number | null = null;
  #closed = false;

  constructor(channel: Channel, onSent: (sent: WorkerEvent & { readonly type: 'webhook' }) => void) {
    this.#channel = channel;
    this.#onSent = onSent;
  }

  /** Takes a webhook, or a part of its body. @throws SERVE_PROTOCOL */
  take(message: Message & { type: 'webhook' | 'body' }, pieces: Buffer[]): void {
    if (message.type === 'webhook') {
      this.#start(message, pieces);
      return;
    }
    const whole = this.#bodies.add(message.id, pieces);
    if (whole === null) return;
    this.#unfinished = null;
    this.#handOver(whole.owner, whole.pieces);
  }

  /** The worker is gone: nothing is reported to it any more. */
  close(): void {
    this.#closed = true;
  }

  #start(order: WebhookOrder, pieces: Buffer[]): void {
    const { ref, bodyBytes } = order;
    if (bodyBytes > MAX_WEBHOOK_BYTES) {
      throw protocolError(`a webhook of ${bodyBytes} bytes; ${MAX_WEBHOOK_BYTES} are allowed`);
    }
    if (this.#unfinished !== null) {
      throw protocolError(`webhook ${ref} before the end of webhook ${this.#unfinished}`);
    }
    const whole = this.#bodies.start(ref, order, bodyBytes, pieces);
    if (whole === null) this.#unfinished = ref;
    else this.#handOver(order, whole);
  }

  #handOver(order: WebhookOrder, pieces: Buffer[]): void {
    const events: WebhookEvents = {
      onKept: () => {
        if (!order.wait) this.#report(order.ref, 'taken');
      },
      onEnd: (end) => {
        if (order.wait) this.#report(order.ref, end);
      },
    };
    const drop = (): void => this.#report(order.ref, 'dropped');
    this.#onSent({ type: 'webhook', order, body: joinPieces(pieces), events, drop });
  }

  #report(ref: number, outcome: WebhookOutcome): void {
    if (this.#closed) return;
    this.#channel.send({ type: 'webhookDone', ref, outcome });
    this.#channel.flush();
  }
}
