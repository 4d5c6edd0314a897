/** The half that all stores have in common: counts of the jobs that wait, and events for a listener. */
import type { JobTarget, WaitingPlace } from './job-record.js';
import { NO_LISTENER, type JobStoreListener, type StoreEvent, type Tell } from './job-store.js';
import type { WaitingQueue, WaitingQueues } from './waiting-jobs.js';

export abstract class StoreBase {
  /** The due jobs that wait, as far as this process knows. */
  protected abstract readonly counts: WaitingQueues<WaitingQueue>;
  #listener: JobStoreListener | null = null;
  /** Events that the listener has not been told, in their order. */
  #early: StoreEvent[] = [];

  get listener(): JobStoreListener {
    return this.#listener ?? NO_LISTENER;
  }

  set listener(listener: JobStoreListener) {
    this.#listener = listener;
    setImmediate(() => {
      const early = this.#early;
      this.#early = [];
      for (const event of early) this.tell(...event);
    });
  }

  hasDue(model: string): boolean {
    return this.counts.hasAny(model);
  }

  waiting(target: JobTarget): number {
    return this.counts.count(target);
  }

  places(): readonly WaitingPlace[] {
    return this.counts.places();
  }

  /** Tells the listener; what happens before there is one is kept for it. */
  readonly tell: Tell = (...event) => {
    const [name, ...args] = event;
    if (this.#listener === null || this.#early.length > 0) this.#early.push(event);
    else (this.#listener[name] as (...given: readonly unknown[]) => void)(...args);
  };
}
