/** The bytes that a call may send before the front grants more. Only one sender at a time may wait. */
export class Credit {
  #bytes: number;
  #wake: (() => void) | null = null;
  cancelled = false;

  constructor(bytes: number) {
    this.#bytes = bytes;
  }

  spend(bytes: number): void {
    this.#bytes -= bytes;
  }

  /**
   * Returns null if something may be sent now, otherwise a promise that resolves once it may, or once the call is
   * cancelled.
   */
  wait(): Promise<void> | null {
    if (this.#bytes > 0 || this.cancelled) return null;
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  grant(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > 0) this.#release();
  }

  /** Releases a waiting sender, because no client reads its data any more. */
  cancel(): void {
    this.cancelled = true;
    this.#release();
  }

  #release(): void {
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }
}
