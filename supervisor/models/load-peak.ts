/** The most calls that were queued and running at once in the last minute: a gauge for autoscalers that look now and then. */

const SECONDS = 60;

export class LoadPeak {
  readonly #most = new Float64Array(SECONDS);
  #second = 0;

  /** So many calls are queued or running now. */
  note(calls: number, nowMs: number): void {
    const slot = this.#advance(nowMs);
    if (calls > (this.#most[slot] as number)) this.#most[slot] = calls;
  }

  /** The most that was noted in the last 60 s. */
  most(nowMs: number): number {
    this.#advance(nowMs);
    return Math.max(...this.#most);
  }

  /** Forgets what is older than a minute. Returns the place of the present second. */
  #advance(nowMs: number): number {
    const second = Math.floor(nowMs / 1000);
    const passed = Math.min(SECONDS, second - this.#second);
    for (let i = 0; i < passed; i += 1) this.#most[(second - i) % SECONDS] = 0;
    if (passed > 0) this.#second = second;
    return second % SECONDS;
  }
}
