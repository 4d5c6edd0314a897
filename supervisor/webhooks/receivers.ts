/**
 * Gives each receiver (an origin) its own queue and a few attempts at a time: a receiver that hangs delays only its own
 * webhooks, and one that is down leaves room for the webhooks of others. A webhook is owed until it is delivered or given up.
 *
 * 1. `excess` checks whether there is room for one more; `add` counts it and queues it.
 * 2. `start` is called when an attempt may begin. After the attempt, `leave` frees its place for the next.
 * 3. For a retry, call `queue`; for an ended webhook, `remove`.
 */
import { formatBytes } from '../options/units.js';

export const RECEIVER_LIMITS = {
  /** Limit of webhooks owed at a time, half of it for one receiver; more are dropped. */
  maxOwed: 1024,
  /** Limit of their bytes, likewise; a single one may use all of it, so that an answer of the default --max-output fits. */
  maxOwedBytes: 128 * 1024 ** 2,
  /** Limit of attempts at a time to one receiver. */
  perReceiver: 8,
  /** Limit of attempts at a time over all receivers: each is an open file. */
  atOnce: 128,
};

/** A receiver; it exists while webhooks are owed to it. */
interface Receiver<Item> {
  readonly queue: Item[];
  running: number;
  owed: number;
  owedBytes: number;
}

export class Receivers<Item extends { readonly url: URL; readonly body: Uint8Array }> {
  readonly #limits: typeof RECEIVER_LIMITS;
  readonly #start: (item: Item) => void;
  /** Receivers by origin, in the order in which free places are given. */
  readonly #receivers = new Map<string, Receiver<Item>>();
  readonly #all = { owed: 0, owedBytes: 0 };
  #running = 0;

  /** `start` may be called within `add`, `queue` and `leave`; call `leave` once for each `start`. */
  constructor(limits: Partial<typeof RECEIVER_LIMITS>, start: (item: Item) => void) {
    this.#limits = { ...RECEIVER_LIMITS, ...limits };
    this.#start = start;
  }

  /** Returns the reason if one more is too much, else null. */
  excess({ origin }: URL, bytes: number): string | null {
    const { maxOwed, maxOwedBytes } = this.#limits;
    const inAll = excessOf(bytes, this.#all, maxOwed, maxOwedBytes, '');
    const itsOwn = this.#receivers.get(origin);
    if (inAll !== null || itsOwn === undefined) return inAll; // a single one may use the whole limit
    return excessOf(bytes, itsOwn, maxOwed / 2, maxOwedBytes / 2, ' to this receiver');
  }

  /** Number of webhooks for which there is room, if they are small; 0 if many bytes are owed. */
  get room(): number {
    const { maxOwed, maxOwedBytes } = this.#limits;
    return this.#all.owedBytes < maxOwedBytes / 2 ? maxOwed - this.#all.owed : 0;
  }

  add(item: Item): void {
    const { origin } = item.url;
    if (!this.#receivers.has(origin))
      this.#receivers.set(origin, { queue: [], running: 0, owed: 0, owedBytes: 0 });
    this.#count(item, 1);
    this.queue(item);
  }

  queue(item: Item): void {
    const receiver = this.#receiverOf(item);
    receiver.queue.push(item);
    this.#startNext(receiver);
  }

  /** Frees the place of an attempt. If all were in use, receivers get them round-robin: this receiver becomes the last. */
  leave(item: Item): void {
    const receiver = this.#receiverOf(item);
    receiver.running -= 1;
    this.#running -= 1;
    this.#receivers.delete(item.url.origin);
    this.#receivers.set(item.url.origin, receiver);
    for (const next of this.#receivers.values()) {
      this.#startNext(next);
      if (this.#running === this.#limits.atOnce) return;
    }
  }

  /** Removes an ended webhook from the counts. */
  remove(item: Item): void {
    this.#count(item, -1);
    if (this.#receiverOf(item).owed === 0) this.#receivers.delete(item.url.origin);
  }

  /** Adds or subtracts one webhook. */
  #count(item: Item, change: 1 | -1): void {
    for (const amount of [this.#all, this.#receiverOf(item)]) {
      amount.owed += change;
      amount.owedBytes += change * item.body.length;
    }
  }

  #receiverOf({ url }: Item): Receiver<Item> {
    return this.#receivers.get(url.origin) as Receiver<Item>;
  }

  #startNext(receiver: Receiver<Item>): void {
    const { perReceiver, atOnce } = this.#limits;
    while (receiver.running < perReceiver && this.#running < atOnce) {
      const item = receiver.queue.shift();
      if (item === undefined) return;
      receiver.running += 1;
      this.#running += 1;
      this.#start(item);
    }
  }
}

function excessOf(
  bytes: number,
  { owed, owedBytes }: Pick<Receiver<unknown>, 'owed' | 'owedBytes'>,
  max: number,
  maxBytes: number,
  to: string,
): string | null {
  if (owed >= max) return `${owed} others${to} are not delivered yet`;
  if (owedBytes + bytes <= maxBytes) return null;
  return `with its ${formatBytes(bytes)}, more than ${formatBytes(maxBytes)}${to} would wait for delivery`;
}
