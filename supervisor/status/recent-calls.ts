/** Counts the calls of each model in the last ten minutes, by minute. */
import type { ModelRecord } from '../http/request/model-management.js';

const MINUTES = 10;
const MINUTE_MS = 60_000;

interface Minute {
  /** Minutes since the origin of the clock. */
  number: number;
  requests: number;
  rejected: number;
}

export class RecentCalls<M extends object> {
  readonly #byModel = new WeakMap<M, Minute[]>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  count(model: M, isRejected: boolean): void {
    const minute = this.#minuteOf(model);
    minute.requests += 1;
    if (isRejected) minute.rejected += 1;
  }

  /** `rejected`: calls answered with 503; they are included in `requests`. */
  of(model: M): ModelRecord['recentCalls'] {
    const oldest = this.#now() - MINUTES;
    const recent = (this.#byModel.get(model) ?? []).filter(({ number }) => number > oldest);
    return {
      requests: recent.reduce((sum, { requests }) => sum + requests, 0),
      rejected: recent.reduce((sum, { rejected }) => sum + rejected, 0),
    };
  }

  #minuteOf(model: M): Minute {
    const number = this.#now();
    const minutes = this.#byModel.get(model) ?? [];
    const last = minutes.at(-1);
    if (last?.number === number) return last;
    const minute = { number, requests: 0, rejected: 0 };
    this.#byModel.set(model, [...minutes.slice(1 - MINUTES), minute]);
    return minute;
  }

  #now(): number {
    return Math.floor(this.#nowMs() / MINUTE_MS);
  }
}
