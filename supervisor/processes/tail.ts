/** Keeps the last bytes of a stream, for the report of a death. */
import { withoutPrintMarks } from '../../protocol/wire/print-mark.js';
export class Tail {
  readonly #limitBytes: number;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    while (this.#chunks.length > 1 && this.#bytes - (this.#chunks[0] as Buffer).length >= this.#limitBytes) {
      this.#bytes -= (this.#chunks.shift() as Buffer).length;
    }
  }

  /** The last `count` lines that are not empty, without marks of prints. */
  lastLines(count: number): string[] {
    const text = Buffer.concat(this.#chunks).subarray(-this.#limitBytes).toString('utf8');
    return withoutPrintMarks(text)
      .split(/[\r\n]+/)
      .filter((line) => line.trim() !== '')
      .slice(-count);
  }
}
