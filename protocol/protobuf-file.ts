/**
 * Reads a file of protobuf field by field, without a schema and without loading it: a reader skips what it does not
 * want by its length, so a model of gigabytes is quick.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** Bytes of the file. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

/** Opens the file for `read`. Returns false if it is no protobuf, which may be seen only after a part was read. */
export function readProtobuf(path: string, read: (reader: ProtobufReader, whole: Range) => void): boolean {
  const file = openSync(path, 'r');
  try {
    read(new ProtobufReader(file), { from: 0, to: fstatSync(file).size });
    return true;
  } catch (thrown) {
    if (thrown instanceof NoProtobuf) return false;
    throw thrown;
  } finally {
    closeSync(file);
  }
}

class NoProtobuf extends Error {}

/** Wire types of protobuf. */
const VARINT = 0;
const EIGHT_BYTES = 1;
const LENGTH = 2;
const FOUR_BYTES = 5;

/** Reads the file in pieces of 64 KiB, wherever it is asked. */
export class ProtobufReader {
  readonly #file: number;
  readonly #piece = Buffer.alloc(64 * 1024);
  #from = 0;
  #to = 0;

  constructor(file: number) {
    this.#file = file;
  }

  /**
   * The fields of the message in a range. `content`: of a field that has a length; null for a number. `value`: of a varint; 0
   * for other fields; numbers beyond 2^53 are not exact, as no length is one. Ends the reading of a file that is no protobuf.
   */
  *fields({ from, to }: Range): Generator<{ number: number; content: Range | null; value: number }> {
    let at = from;
    while (at < to) {
      const [tag, next] = this.#varint(at);
      const number = Math.floor(tag / 8);
      at = next;
      let content: Range | null = null;
      let value = 0;
      switch (tag % 8) {
        case VARINT:
          [value, at] = this.#varint(at);
          break;
        case EIGHT_BYTES:
          at += 8;
          break;
        case FOUR_BYTES:
          at += 4;
          break;
        case LENGTH: {
          const [bytes, start] = this.#varint(at);
          content = { from: start, to: start + bytes };
          at = content.to;
          break;
        }
        default:
          throw new NoProtobuf();
      }
      if (number === 0 || at > to) throw new NoProtobuf();
      yield { number, content, value };
    }
  }

  text({ from, to }: Range): string {
    const bytes = Buffer.alloc(to - from);
    readSync(this.#file, bytes, 0, bytes.length, from);
    return bytes.toString();
  }

  /** Returns the number and the place behind it. */
  #varint(at: number): [value: number, next: number] {
    let value = 0;
    for (let i = 0; i < 10; i += 1) {
      const byte = this.#byte(at + i);
      value += (byte % 128) * 128 ** i;
      if (byte < 128) return [value, at + i + 1];
    }
    throw new NoProtobuf();
  }

  #byte(at: number): number {
    if (at < this.#from || at >= this.#to) {
      this.#from = at;
      this.#to = at + readSync(this.#file, this.#piece, 0, this.#piece.length, at);
    }
    const byte = this.#piece[at - this.#from];
    if (byte === undefined || at >= this.#to) throw new NoProtobuf();
    return byte;
  }
}
