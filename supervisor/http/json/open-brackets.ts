/**
 * The stack of open brackets, outermost first: one bit for each, so that a body of nothing but brackets costs an eighth
 * of its size.
 */
export class OpenBrackets {
  depth = 0;
  /** Whether the innermost bracket is that of an object. */
  inObject = false;
  #bits = new Uint8Array(32);

  push(isObject: boolean): void {
    const byte = this.depth >>> 3;
    if (byte === this.#bits.length) {
      const twice = new Uint8Array(2 * byte);
      twice.set(this.#bits);
      this.#bits = twice;
    }
    const bit = 1 << (this.depth & 7);
    this.#bits[byte] = isObject ? (this.#bits[byte] as number) | bit : (this.#bits[byte] as number) & ~bit;
    this.depth += 1;
    this.inObject = isObject;
  }

  pop(): void {
    this.depth -= 1;
    const outer = this.depth - 1;
    this.inObject = outer >= 0 && ((this.#bits[outer >>> 3] as number) & (1 << (outer & 7))) !== 0;
  }
}
