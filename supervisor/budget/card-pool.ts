/**
 * The memory of one GPU: what each worker holds of it and what all hold. By process where the driver tells; else a worker
 * holds what the card's use rose by over its start, and all hold what the card uses beyond its use without them.
 */
import type { CardMemory } from '../machine/nvidia-smi.js';

/** The memory of a worker that has ended, until the driver says that it is back. */
export interface OwedMemory {
  readonly id: number;
  readonly model: string;
  readonly bytes: number;
  readonly diedAtMs: number;
  readonly usedBytes: number;
}

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
  /** Use of the card when the present start was allowed. */
  #before: { readonly id: () => number | null; readonly bytes: number } | null = null;
  readonly #rises = new Map<number, number>();
  #owed: readonly OwedMemory[] = [];

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

  get owed(): readonly OwedMemory[] {
    return this.#owed;
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
  starts(id: () => number | null): void {
    this.#before = { id, bytes: this.#card.usedBytes };
  }

  /** The card was read. `ids`: the workers that are on it. */
  read(card: CardMemory, readAtMs: number, ids: ReadonlySet<number>): void {
    this.#card = card;
    this.readAtMs = readAtMs;
    for (const id of this.#rises.keys()) if (!ids.has(id)) this.#rises.delete(id);
    for (const id of ids) if (card.byGroup.has(id)) this.#tells = true;
    const starting = this.#before?.id() ?? null;
    if (this.#before !== null && starting !== null && ids.has(starting)) {
      const rise = card.usedBytes - this.#before.bytes;
      this.#rises.set(starting, Math.max(rise, this.#rises.get(starting) ?? 0));
    }
    this.#owed = this.#owed.filter(
      ({ bytes, usedBytes, diedAtMs }) =>
        card.usedBytes > usedBytes - BACK_SHARE * bytes && readAtMs - diedAtMs < BACK_MS,
    );
    if (ids.size === 0 && this.#owed.length === 0) this.#baseBytes = card.usedBytes;
  }

  died(id: number, model: string, nowMs: number): void {
    const bytes = this.bytesOf(id);
    if (bytes === 0) return;
    this.#owed = [...this.#owed, { id: -id, model, bytes, diedAtMs: nowMs, usedBytes: this.#card.usedBytes }];
    this.#rises.delete(id);
  }
}
