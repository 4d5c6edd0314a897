/**
 * Watches whether a worker is frozen by a signal (SIGSTOP) while it is idle: the kernel reports it, and nothing else would
 * before the next call. A ping would not tell it apart from an app that computes between calls.
 */
import type { Timers } from './timers.js';

/** Time between two looks. */
export const FROZEN_LOOK_MS = 5000;

export interface WatchedWorker {
  /** Asks the kernel. */
  isFrozen(): boolean;
  /** Whether it waits for calls. */
  isIdle(): boolean;
  /** Called when its state has changed. */
  onChange(isFrozen: boolean): void;
}

export class FrozenWatch {
  readonly #timers: Timers;
  readonly #worker: WatchedWorker;
  #isFrozen = false;

  /** The owner of `timers` stops them when the worker is gone. */
  constructor(timers: Timers, worker: WatchedWorker) {
    this.#timers = timers;
    this.#worker = worker;
  }

  /** As of the last look. */
  get isFrozen(): boolean {
    return this.#isFrozen;
  }

  start(): void {
    this.#timers.start(FROZEN_LOOK_MS, () => this.#look());
  }

  #look(): void {
    const worker = this.#worker;
    // A frozen worker may have been given a call since, for want of others.
    if (this.#isFrozen || worker.isIdle()) this.#set(worker.isFrozen());
    this.start();
  }

  #set(isFrozen: boolean): void {
    if (isFrozen === this.#isFrozen) return;
    this.#isFrozen = isFrozen;
    this.#worker.onChange(isFrozen);
  }
}
