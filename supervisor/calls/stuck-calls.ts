/**
 * Calls that go on after their limit and the grace behind it, in a worker that runs others at the same time.
 *
 * 1. The worker gets no more calls; its listener starts another one. 2. The other calls end, or exceed their own limits.
 * 3. Then the process is killed: at once if there are no others, or if its event loop answers no ping.
 */
import type { Channel } from '../../protocol/wire/channel.js';
import { startLimit, type LimitTimer } from '../machine/limit-timer.js';
import type { HeldBatch } from './held-batch.js';

/** Time in which an event loop that turns answers a ping. */
export const PONG_MS = 500;

export interface StuckCallsListener {
  /** Other calls run beside one that does not end: the worker must get no more calls. */
  onOutlasted(): void;
  /** The process must be killed. */
  onHopeless(): void;
}

export class StuckCalls {
  readonly #channel: Channel;
  readonly #active: () => readonly HeldBatch[];
  readonly #listener: StuckCallsListener;
  readonly #stuck = new Set<HeldBatch>();
  #pingTimer: LimitTimer | null = null;
  #pings = 0;

  /** `active` returns the batches that run or should begin. */
  constructor(channel: Channel, active: () => readonly HeldBatch[], listener: StuckCallsListener) {
    this.#channel = channel;
    this.#active = active;
    this.#listener = listener;
  }

  /** The grace of this batch is over. */
  add(batch: HeldBatch): void {
    this.#stuck.add(batch);
    if (this.#areAlone()) {
      this.#listener.onHopeless();
      return;
    }
    this.#listener.onOutlasted();
    this.#ping();
  }

  /** A batch has ended. */
  onEnded(): void {
    if (this.#stuck.size > 0 && this.#areAlone()) this.#listener.onHopeless();
  }

  onPong(ref: number): void {
    if (ref === this.#pings) this.close();
  }

  /** Stops its timer. */
  close(): void {
    this.#pingTimer?.stop();
    this.#pingTimer = null;
  }

  /** Whether stuck calls are all that is left. */
  #areAlone(): boolean {
    const active = this.#active();
    return active.length > 0 && active.every((batch) => this.#stuck.has(batch));
  }

  #ping(): void {
    if (this.#pingTimer !== null) return; // one is on its way
    this.#pings += 1;
    this.#channel.send({ type: 'ping', ref: this.#pings });
    this.#channel.flush();
    this.#pingTimer = startLimit(PONG_MS, () => this.#listener.onHopeless());
  }
}
