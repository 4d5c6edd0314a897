/**
 * Values of JavaScript as V8 itself writes them, between a program and the worker of its function: typed arrays, Buffers,
 * Dates, Maps, Sets, bigints, undefined, errors and cycles stay what they are; an object of a class crosses as its own fields.
 */
import {
  DefaultDeserializer,
  DefaultSerializer,
  serialize,
  type Deserializer,
  type Serializer,
} from 'node:v8';
import { describeThrown, type ErrorCode } from '../errors.js';
import { isLarge, kindOf, putIn, takeOut, viewOf, type Listed, type TakenOut } from './large-arrays.js';
import { unreadable, unwritable, type ValueFormat } from './value-format.js';

/** Version of the format, which stands in its second byte: each side reads its own and older ones. */
export const V8_VERSION = serialize(null)[1] as number;

/**
 * If there are large arrays, the message begins with a byte that no value begins with and, at 4, the length of the value; the
 * arrays stand behind it. Memory that passed through V8's reader or writer, or hangs on an object that did, lives until a full
 * collection, and a megabyte for each call would make those frequent (docs/benchmarks.md). So arrays near the top of the value
 * are no part of it: a list of them stands before it.
 */
const HAS_ARRAYS = 0;
const HAS_LIST = 1;
const PREFIX_BYTES = 8;

/** Called by V8 for each typed array, Buffer and DataView; the types of Node leave both out. */
interface InPlace {
  _writeHostObject(this: Serializer, view: object): void;
  _readHostObject(this: Deserializer): ArrayBufferView;
}
const { _writeHostObject: writeInPlace } = DefaultSerializer.prototype as unknown as InPlace;
const { _readHostObject: readInPlace } = DefaultDeserializer.prototype as unknown as InPlace;

class ValueWriter extends DefaultSerializer {
  /** The arrays that stand behind the value. */
  arrays: readonly Uint8Array[];
  /** Whether an array that was taken out stands in the value as well. */
  meetsOneAgain = false;

  constructor(takenOut: readonly Uint8Array[]) {
    super();
    this.arrays = takenOut;
  }

  /** Writes the bytes that stand behind the value, then the array, which is empty if they do. */
  _writeHostObject(view: Uint8Array): void {
    const isBehind = isLarge(view);
    if (isBehind) {
      this.meetsOneAgain ||= this.arrays.includes(view);
      this.arrays = [...this.arrays, view];
    }
    this.writeUint32(isBehind ? view.byteLength : 0);
    writeInPlace.call(this, isBehind ? view.subarray(0, 0) : view);
  }
}

class ValueReader extends DefaultDeserializer {
  arrays: ArrayMemory | null;

  constructor(value: Buffer, arrays: ArrayMemory | null) {
    super(value);
    this.arrays = arrays;
  }

  _readHostObject(): unknown {
    const bytes = this.readUint32();
    const view = readInPlace.call(this) as Uint8Array;
    return bytes === 0 || this.arrays === null ? ownCopy(view) : this.arrays.next(kindOf(view), bytes);
  }
}

function ownCopy(view: ArrayBufferView): unknown {
  if (Buffer.isBuffer(view)) return Buffer.from(view);
  if (view instanceof DataView)
    return new DataView(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
  return (view as Uint8Array).slice();
}

/** The arrays that stand behind a value, in the order in which they were written. */
class ArrayMemory {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  next(kind: string, bytes: number): unknown {
    const start = this.#at;
    if (start + bytes > this.#bytes.length) throw new RangeError('it ends inside an array');
    this.#at += aligned(bytes);
    return viewOf(kind, this.#bytes.subarray(start, start + bytes));
  }
}

/** Any array may begin here. */
function aligned(at: number): number {
  return Math.ceil(at / 8) * 8;
}

function read(bytes: Buffer): { readonly value: unknown; readonly hasViews: boolean } {
  try {
    const hasViews = bytes[0] === HAS_ARRAYS;
    return { value: hasViews ? readWithArrays(bytes) : readValue(bytes), hasViews };
  } catch (cause) {
    throw unreadable(cause);
  }
}

function readValue(bytes: Buffer): unknown {
  const reader = new ValueReader(bytes, null);
  reader.readHeader();
  return reader.readValue();
}

function readWithArrays(bytes: Buffer): unknown {
  const end = PREFIX_BYTES + bytes.readUInt32LE(4);
  const arrays = new ArrayMemory(atAlignedPlace(bytes.subarray(aligned(end))));
  const reader = new ValueReader(Buffer.from(bytes.subarray(PREFIX_BYTES, end)), arrays);
  reader.readHeader();
  const list = bytes[1] === HAS_LIST ? (reader.readValue() as readonly Listed[]) : [];
  const views = list.map(([kind, length]) => arrays.next(kind, length));
  const rest: unknown = reader.readValue();
  reader.arrays = null;
  const copies = new Set<unknown>();
  return list.reduce((value, [, , ...path], i) => putIn(value, path, views[i], copies), rest);
}

/** A part of a larger message may begin anywhere in memory. */
function atAlignedPlace(arrays: Buffer): Buffer {
  const { byteOffset } = arrays;
  return byteOffset === aligned(byteOffset) ? arrays : Buffer.from(new Uint8Array(arrays).buffer);
}

function write(value: unknown, name: string, code: ErrorCode, allocate = Buffer.allocUnsafeSlow): Buffer {
  try {
    const whole = { rest: value, list: [], arrays: [] };
    return writeWithout(takeOut(value), allocate) ?? (writeWithout(whole, allocate) as Buffer);
  } catch (cause) {
    const what = findUnwritable(value, name, new Set(), 0) ?? `${name}: ${describeThrown(cause).message}`;
    throw unwritable(code, what, cause);
  }
}

/** Returns null if an array that was taken out stands in the rest as well: it must come back as one. */
function writeWithout(
  { rest, list, arrays: takenOut }: TakenOut,
  allocate: (bytes: number) => Buffer,
): Buffer | null {
  const writer = new ValueWriter(takenOut);
  writer.writeHeader();
  const hasList = list.length > 0;
  if (hasList) writer.writeValue(list);
  writer.writeValue(rest);
  if (writer.meetsOneAgain) return null;
  const written = writer.releaseBuffer();
  const { arrays } = writer;
  writer.arrays = [];
  return arrays.length === 0 ? written : withArrays(written, hasList, arrays, allocate);
}

function withArrays(
  value: Buffer,
  hasList: boolean,
  arrays: readonly Uint8Array[],
  allocate: (bytes: number) => Buffer,
): Buffer {
  let end = aligned(PREFIX_BYTES + value.length);
  const starts = arrays.map(({ byteLength }) => {
    const start = end;
    end += aligned(byteLength);
    return start;
  });
  const bytes = allocate(end);
  bytes.writeUInt8(HAS_ARRAYS, 0);
  bytes.writeUInt8(hasList ? HAS_LIST : 0, 1);
  bytes.writeUInt32LE(value.length, 4);
  bytes.set(value, PREFIX_BYTES);
  arrays.forEach(({ buffer, byteOffset, byteLength }, i) =>
    bytes.set(new Uint8Array(buffer, byteOffset, byteLength), starts[i]),
  );
  return bytes;
}

export const V8_VALUES: ValueFormat = { read, write };

/** V8 writes a few thousand levels; a walk that comes near the end of the stack may end the process. */
const MAX_DEPTH = 1000;
const SHOWN_CHARS = 60;

/** Finds the first part that V8 does not write, and says what it is; null if no part alone is to blame. */
function findUnwritable(value: unknown, path: string, seen: Set<object>, depth: number): string | null {
  if (typeof value === 'function' || typeof value === 'symbol') return `${path} is a ${typeof value}.`;
  if (typeof value !== 'object' || value === null || seen.has(value)) return null;
  if (depth > MAX_DEPTH)
    return `${path.slice(0, SHOWN_CHARS)}… is nested more than ${MAX_DEPTH} levels deep.`;
  seen.add(value);
  try {
    for (const [key, inner] of partsOf(value)) {
      const found = findUnwritable(inner, path + key, seen, depth + 1);
      if (found !== null) return found;
    }
    serialize(value);
    return null;
  } catch (cause) {
    const kind = Object.prototype.toString.call(value).slice('[object '.length, -1);
    return `${path} cannot: it is ${/^[AEIOU]/.test(kind) ? 'an' : 'a'} ${kind} (${describeThrown(cause).message}).`;
  }
}

/** The parts of a value with their keys; a getter may throw. */
function* partsOf(value: object): Generator<[key: string, part: unknown]> {
  if (ArrayBuffer.isView(value)) return;
  if (value instanceof Map) {
    for (const [key, part] of value as Map<unknown, unknown>) {
      yield ['.keys()', key];
      yield [`.get(${typeof key === 'string' ? JSON.stringify(key) : String(key)})`, part];
    }
  } else if (value instanceof Set) for (const part of value) yield ['.values()', part];
  else
    for (const [key, part] of Object.entries(value))
      yield [
        /^\d+$/.test(key) ? `[${key}]` : /^[\w$]+$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`,
        part,
      ];
}
