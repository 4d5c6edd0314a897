/**
 * Finds the files that hold the weights of an ONNX model outside of it, by walking the fields of its protobuf
 * (onnx/onnx.proto). Reads only the heads of fields that cannot name a file, so a model of gigabytes is quick.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** Paths as the model writes them, relative to its folder, each once. A file that is no ONNX model has none. */
export function externalLocations(model: string): string[] {
  const file = openSync(model, 'r');
  try {
    const found = new Set<string>();
    const reader = new Reader(file);
    walk(reader, { from: 0, to: fstatSync(file).size }, MODEL, (location) => found.add(location));
    return [...found];
  } catch (thrown) {
    if (thrown instanceof NoProtobuf) return [];
    throw thrown;
  } finally {
    closeSync(file);
  }
}

/** The messages that lead to a tensor, by the numbers of their fields. */
interface Message {
  readonly fields: Readonly<Record<number, () => Message>>;
  /** Number of the field with the entries of the place of external data. */
  readonly external?: number;
}

const TENSOR: Message = { fields: {}, external: 13 };
const SPARSE: Message = { fields: { 1: () => TENSOR, 2: () => TENSOR } };
const ATTRIBUTE: Message = {
  fields: {
    5: () => TENSOR,
    6: () => GRAPH,
    10: () => TENSOR,
    11: () => GRAPH,
    22: () => SPARSE,
    23: () => SPARSE,
  },
};
const NODE: Message = { fields: { 5: () => ATTRIBUTE } };
const GRAPH: Message = { fields: { 1: () => NODE, 5: () => TENSOR, 15: () => SPARSE } };
const FUNCTION: Message = { fields: { 7: () => NODE, 11: () => ATTRIBUTE } };
const MODEL: Message = { fields: { 7: () => GRAPH, 25: () => FUNCTION } };

interface Range {
  readonly from: number;
  readonly to: number;
}

function walk(reader: Reader, range: Range, message: Message, onLocation: (path: string) => void): void {
  for (const { number, content } of fieldsOf(reader, range)) {
    if (content === null) continue;
    const inner = message.fields[number];
    if (inner !== undefined) walk(reader, content, inner(), onLocation);
    if (number === message.external) {
      const location = locationIn(reader, content);
      if (location !== null) onLocation(location);
    }
  }
}

/** The value of an entry whose key is `location`; null for another entry. */
function locationIn(reader: Reader, range: Range): string | null {
  const texts = new Map<number, string>();
  for (const { number, content } of fieldsOf(reader, range))
    if (content !== null && content.to - content.from <= MAX_PATH_BYTES)
      texts.set(number, reader.text(content));
  return texts.get(1) === 'location' ? (texts.get(2) ?? null) : null;
}

const MAX_PATH_BYTES = 4096;

/** Wire types of protobuf. */
const VARINT = 0;
const EIGHT_BYTES = 1;
const LENGTH = 2;
const FOUR_BYTES = 5;

interface Field {
  readonly number: number;
  /** The content of a field that has a length; null for a number. */
  readonly content: Range | null;
}

/** @throws NoProtobuf */
function* fieldsOf(reader: Reader, { from, to }: Range): Generator<Field> {
  let at = from;
  while (at < to) {
    const [tag, next] = reader.varint(at);
    const number = Math.floor(tag / 8);
    at = next;
    let content: Range | null = null;
    switch (tag % 8) {
      case VARINT:
        [, at] = reader.varint(at);
        break;
      case EIGHT_BYTES:
        at += 8;
        break;
      case FOUR_BYTES:
        at += 4;
        break;
      case LENGTH: {
        const [bytes, start] = reader.varint(at);
        content = { from: start, to: start + bytes };
        at = content.to;
        break;
      }
      default:
        throw new NoProtobuf();
    }
    if (number === 0 || at > to) throw new NoProtobuf();
    yield { number, content };
  }
}

class NoProtobuf extends Error {}

/** Reads a file in pieces of 64 KiB, wherever it is asked. */
class Reader {
  readonly #file: number;
  readonly #piece = Buffer.alloc(64 * 1024);
  #from = 0;
  #to = 0;

  constructor(file: number) {
    this.#file = file;
  }

  /** Returns the number and the place behind it. Numbers beyond 2^53 are not exact, as no length is one. */
  varint(at: number): [value: number, next: number] {
    let value = 0;
    for (let i = 0; i < 10; i += 1) {
      const byte = this.#byte(at + i);
      value += (byte % 128) * 128 ** i;
      if (byte < 128) return [value, at + i + 1];
    }
    throw new NoProtobuf();
  }

  text({ from, to }: Range): string {
    const bytes = Buffer.alloc(to - from);
    readSync(this.#file, bytes, 0, bytes.length, from);
    return bytes.toString();
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
