/** Counts the calls of each model over the last ten minutes, one minute at a time. */

const MINUTES = 10;
const MINUTE_MS = 60_000;

export interface CallCounts {
  readonly requests: number;
  /** Those of them that no worker was to be had for. */
  readonly rejected: number;
}

interface Minute {
  /** Since the clock began. */
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

  of(model: M): CallCounts {
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
