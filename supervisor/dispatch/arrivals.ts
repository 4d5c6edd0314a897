/** Calls that were admitted and whose bodies are still arriving: how many, and their bytes. */

/** A place in line for a call whose body is still arriving. Give it back: `submit` or `release`; more of them do nothing. */
export interface Admission {
  /** Counts body bytes beyond those announced. @throws SERVE_QUEUE_FULL */
  grow(bytes: number): void;
  release(): void;
}

export class Arrivals {
  #count = 0;
  #bytes = 0;

  get count(): number {
    return this.#count;
  }

  /** What was announced, and what came beyond that. */
  get bytes(): number {
    return this.#bytes;
  }

  /** `checkRoom` throws if so many bytes more cannot be held. */
  add(announcedBytes: number, checkRoom: (moreBytes: number) => void): Admission {
    let bytes = announcedBytes;
    let arrivedBytes = 0;
    let released = false;
    this.#count += 1;
    this.#bytes += bytes;
    return {
      grow: (more) => {
        arrivedBytes += more;
        if (arrivedBytes <= bytes || released) return;
        const extra = arrivedBytes - bytes;
        checkRoom(extra);
        bytes += extra;
        this.#bytes += extra;
      },
      release: () => {
        if (released) return;
        released = true;
        this.#count -= 1;
        this.#bytes -= bytes;
      },
    };
  }
}
