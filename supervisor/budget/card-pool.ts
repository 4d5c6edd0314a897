/**
 * The memory of one GPU: what each worker holds of it and what all hold. By process where the driver tells; else a worker
 * holds what the card's use rose by over its start, and all hold what the card uses beyond its use without them.
 */
import type { CardMemory } from '../machine/nvidia-smi.js';
import type { HeldWorker, Start } from './facts.js';

/** Longest time that memory is expected back; after that counts what the driver says. */
const BACK_MS = 10_000;

/** The driver rounds, and other processes change their use meanwhile. */
const BACK_SHARE = 0.9;

export class CardPool {
  readonly name: string;
  readonly limitBytes: number;
  readAtMs = -Infinity;
  #card: CardMemory;
  #tells = false;
  /** Use of the card while it had none of our workers. */
  #baseBytes: number;
  /** The present start, and the use of the card when it was allowed. */
  #before: { readonly start: Pick<Start, 'pid'>; readonly bytes: number } | null = null;
  readonly #rises = new Map<number, number>();
  /** Workers that have ended and whose memory the driver has not given back yet, with the use of the card before that. */
  readonly #owed = new Map<HeldWorker, number>();

  constructor(card: CardMemory, limitBytes: number) {
    this.name = `gpu ${card.index}`;
    this.limitBytes = Math.min(limitBytes, card.totalBytes);
    this.#card = card;
    this.#baseBytes = card.usedBytes;
  }

  /** Whether this is the card of a device such as `gpu 0` or `gpu GPU-…`. */
  isOf(device: string): boolean {
    const { index, uuid } = this.#card;
    return device === `gpu ${index}` || (device.startsWith('gpu GPU-') && `gpu ${uuid}`.startsWith(device));
  }

  /** Workers that have ended, until the driver says that their memory is back. */
  get owed(): HeldWorker[] {
    return [...this.#owed.keys()];
  }

  /** Memory that all workers hold. */
  get ownBytes(): number {
    if (!this.#tells) return Math.max(0, this.#card.usedBytes - this.#baseBytes);
    return [...this.#rises.keys()].reduce((sum, id) => sum + this.bytesOf(id), 0);
  }

  /** As `ownBytes`, and at least so much that what is left of the budget is free on the card. */
  get usedBytes(): number {
    const { totalBytes, usedBytes } = this.#card;
    return Math.max(this.ownBytes, this.limitBytes - (totalBytes - usedBytes));
  }

  bytesOf(id: number): number {
    return this.#card.byGroup.get(id) ?? this.#rises.get(id) ?? 0;
  }

  /** A start on this card was allowed; the gate allows one at a time. */
  starts(start: Pick<Start, 'pid'>): void {
    this.#before = { start, bytes: this.#card.usedBytes };
  }

  /** The card was read. `ids`: the workers that are on it. */
  read(card: CardMemory, readAtMs: number, ids: ReadonlySet<number>): void {
    this.#card = card;
    this.readAtMs = readAtMs;
    for (const id of this.#rises.keys()) if (!ids.has(id)) this.#rises.delete(id);
    for (const id of ids) if (card.byGroup.has(id)) this.#tells = true;
    const starting = this.#before?.start.pid ?? null;
    if (this.#before !== null && starting !== null && ids.has(starting)) {
      const rise = card.usedBytes - this.#before.bytes;
      this.#rises.set(starting, Math.max(rise, this.#rises.get(starting) ?? 0));
    }
    for (const [worker, usedBytes] of this.#owed) {
      const backBytes = BACK_SHARE * (worker.bytes.get(this.name) ?? 0);
      if (usedBytes - card.usedBytes >= backBytes || readAtMs - worker.sinceMs >= BACK_MS)
        this.#owed.delete(worker);
    }
    if (ids.size === 0 && this.#owed.size === 0) this.#baseBytes = card.usedBytes;
  }

  died(id: number, model: string, nowMs: number): void {
    const bytes = this.bytesOf(id);
    if (bytes === 0) return;
    const owed: HeldWorker = {
      id: -id,
      model,
      device: this.name,
      bytes: new Map([[this.name, bytes]]),
      state: 'leaving',
      sinceMs: nowMs,
      idleSinceMs: nowMs,
      isProven: true,
    };
    this.#owed.set(owed, this.#card.usedBytes);
    this.#rises.delete(id);
  }
}
