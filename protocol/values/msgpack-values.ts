/**
 * Values of a program as MessagePack, for apps that are no code for Node: a typed array is a tensor of one dimension, and a
 * `Tensor` any other, each an extension: its datatype, its shape, its bytes (docs/wire.md). The library msgpackr would leave out
 * Maps, functions and promises without a word, and what it is taught it is taught for all of the program.
 */
import { describeThrown, type ErrorCode } from '../errors.js';
import {
  DATATYPE_OF_ARRAY,
  elementCount,
  newData,
  problemOfTensor,
  Tensor,
  typedArrayName,
} from './tensor.js';
import type { Datatype, TensorData } from './tensor.js';
import { unreadable, unwritable, type ValueFormat } from './value-format.js';

/** The types of extensions. */
const TENSOR = 1;
const TIMESTAMP = 0xff;
const TIMESTAMP_BYTES = 12;

/** The worker in Python reads no deeper ones; an object that contains itself is one of them. */
const MAX_DEPTH = 128;

/** The tensor of one dimension that a typed array stands for; null for any other value. */
export function tensorOfArray(value: unknown): Tensor | null {
  const name = typedArrayName(value) ?? '';
  const datatype = name === 'Uint8Array' ? undefined : DATATYPE_OF_ARRAY[name]; // that is bytes
  if (datatype === undefined) return null;
  const { buffer, byteOffset, length } = value as Float32Array;
  const data = datatype === 'UINT8' ? new Uint8Array(buffer, byteOffset, length) : value;
  return new Tensor(datatype, [length], data as TensorData[Datatype]);
}

/** A tensor as a program gets it: the data alone if it has one dimension, and their class says the datatype. */
function asProgramHasIt(tensor: Tensor): unknown {
  const { datatype, shape, data } = tensor;
  const saysIt = datatype === 'UINT8' || DATATYPE_OF_ARRAY[typedArrayName(data) ?? ''] === datatype;
  return shape.length === 1 && saysIt ? data : tensor;
}

class Writer {
  #bytes = Buffer.allocUnsafe(256);
  #at = 0;
  /** The keys of the value that is being written, from the whole one. */
  readonly path: unknown[] = [];

  get written(): Buffer {
    return this.#bytes.subarray(0, this.#at);
  }

  value(value: unknown): void {
    if (value === null || value === undefined) this.#byte(0xc0);
    else if (typeof value === 'string') this.#text(value);
    else if (typeof value === 'number') this.#number(value);
    else if (typeof value === 'boolean') this.#byte(value ? 0xc3 : 0xc2);
    else if (typeof value === 'bigint') this.#bigint(value);
    else if (typeof value === 'object') this.#object(value);
    else throw new TypeError(`is a ${typeof value}`);
  }

  #object(value: object): void {
    if (this.path.length >= MAX_DEPTH)
      throw new TypeError(`is nested more than ${MAX_DEPTH} levels deep, or contains itself`);
    const tensor = tensorOfArray(value) ?? tensorOfFields(value);
    if (tensor !== null) this.#tensor(tensor);
    else if (Array.isArray(value)) this.#list(value);
    else if (ArrayBuffer.isView(value)) this.#binary(value);
    else if (value instanceof ArrayBuffer) this.#binary(new Uint8Array(value));
    else if (value instanceof Date) this.#timestamp(value);
    else if (value instanceof Set) this.#list([...(value as Set<unknown>)]);
    else if (value instanceof Map) this.#map([...(value as Map<unknown, unknown>)]);
    else this.#map(fieldsOf(value));
  }

  #list(items: readonly unknown[]): void {
    this.#head(0xdd, items.length);
    for (let i = 0; i < items.length; i += 1) this.#part(i, items[i]);
  }

  #map(entries: readonly (readonly [unknown, unknown])[]): void {
    this.#head(0xdf, entries.length);
    for (const [key, value] of entries) {
      if (typeof key === 'object' && key !== null) throw new TypeError('has a key that is no text or number');
      this.value(key);
      this.#part(key, value);
    }
  }

  #part(key: unknown, value: unknown): void {
    this.path.push(key);
    this.value(value);
    this.path.pop();
  }

  #tensor({ datatype, shape, data }: Tensor): void {
    const start = this.#at;
    this.#head(0xc9, 0);
    this.#byte(TENSOR);
    this.#text(datatype);
    this.#list(shape);
    if (datatype === 'BYTES') this.#list((data as TensorData['BYTES']).map((item) => Buffer.from(item)));
    else this.#raw(data as Uint8Array);
    this.#bytes.writeUInt32BE(this.#at - start - 6, start + 1);
  }

  #timestamp(date: Date): void {
    const ms = date.getTime();
    if (Number.isNaN(ms)) throw new TypeError('is an invalid Date');
    const seconds = Math.floor(ms / 1000);
    this.#byte(0xc7);
    this.#byte(TIMESTAMP_BYTES);
    this.#byte(TIMESTAMP);
    this.#uint32((ms - seconds * 1000) * 1e6);
    this.#uint64(BigInt(seconds));
  }

  #number(value: number): void {
    if (!Number.isSafeInteger(value) || Object.is(value, -0)) {
      this.#byte(0xcb);
      const at = this.#room(8);
      this.#bytes.writeDoubleBE(value, at);
    } else if (value >= -32 && value < 128) this.#byte(value & 0xff);
    else if (value === (value | 0)) {
      this.#byte(0xd2);
      this.#uint32(value >>> 0);
    } else this.#bigint(BigInt(value));
  }

  #bigint(value: bigint): void {
    const isUnsigned = value >= 0n;
    if (isUnsigned ? BigInt.asUintN(64, value) !== value : BigInt.asIntN(64, value) !== value)
      throw new TypeError('is a bigint beyond 64 bits');
    this.#byte(isUnsigned ? 0xcf : 0xd3);
    this.#uint64(value);
  }

  #text(text: string): void {
    const length = Buffer.byteLength(text);
    this.#head(0xdb, length);
    const at = this.#room(length);
    this.#bytes.write(text, at);
  }

  #binary(view: ArrayBufferView): void {
    this.#head(0xc6, view.byteLength);
    this.#raw(view);
  }

  #raw({ buffer, byteOffset, byteLength }: ArrayBufferView): void {
    const at = this.#room(byteLength);
    this.#bytes.set(new Uint8Array(buffer, byteOffset, byteLength), at);
  }

  /** A mark with a length of 32 bits. */
  #head(mark: number, length: number): void {
    this.#byte(mark);
    this.#uint32(length);
  }

  #byte(byte: number): void {
    const at = this.#room(1);
    this.#bytes[at] = byte;
  }

  #uint32(value: number): void {
    const at = this.#room(4);
    this.#bytes.writeUInt32BE(value, at);
  }

  #uint64(value: bigint): void {
    const at = this.#room(8);
    this.#bytes.writeBigUInt64BE(BigInt.asUintN(64, value), at);
  }

  /** Makes room for so many bytes, and returns their place in `#bytes`, which may be another buffer afterwards. */
  #room(count: number): number {
    const at = this.#at;
    this.#at += count;
    if (this.#at > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(this.#at, 2 * this.#bytes.length));
      larger.set(this.#bytes.subarray(0, at));
      this.#bytes = larger;
    }
    return at;
  }
}

/** A tensor of another copy of the class, or an object with its fields; null for any other. */
function tensorOfFields(value: object): Tensor | null {
  const { datatype, shape, data } = value as Partial<Tensor>;
  if (datatype === undefined || problemOfTensor(datatype, shape, data) !== null) return null;
  return new Tensor(datatype, shape as number[], data as TensorData[Datatype]);
}

/** The fields of an object of any class of a program. @throws TypeError for one of JavaScript's own, whose fields are not all */
function fieldsOf(value: object): [string, unknown][] {
  const kind = Object.prototype.toString.call(value).slice('[object '.length, -1);
  if (kind === 'Object') return Object.entries(value);
  throw new TypeError(`cannot: it is ${/^[AEIOU]/.test(kind) ? 'an' : 'a'} ${kind}`);
}

function shown(key: unknown): string {
  if (typeof key !== 'string') return `[${String(key)}]`;
  return /^[\w$]+$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  value(): unknown {
    const mark = this.#uint(1);
    if (mark < 0x80) return mark;
    if (mark < 0x90) return this.#map(mark & 0x0f);
    if (mark < 0xa0) return this.#list(mark & 0x0f);
    if (mark < 0xc0) return this.#text(mark & 0x1f);
    return mark >= 0xe0 ? mark - 0x100 : this.#marked(mark);
  }

  #marked(mark: number): unknown {
    if (mark === 0xc0) return null;
    if (mark === 0xc2 || mark === 0xc3) return mark === 0xc3;
    if (mark >= 0xc4 && mark <= 0xc6) return new Uint8Array(this.#take(this.#uint(1 << (mark - 0xc4))));
    if (mark >= 0xc7 && mark <= 0xc9) return this.#extension(this.#uint(1 << (mark - 0xc7)));
    if (mark === 0xca) return this.#bytes.readFloatBE(this.#pass(4));
    if (mark === 0xcb) return this.#bytes.readDoubleBE(this.#pass(8));
    if (mark >= 0xcc && mark <= 0xce) return this.#uint(1 << (mark - 0xcc));
    if (mark === 0xcf) return asNumber(this.#bytes.readBigUInt64BE(this.#pass(8)));
    if (mark >= 0xd0 && mark <= 0xd2) return this.#int(1 << (mark - 0xd0));
    if (mark === 0xd3) return asNumber(this.#bytes.readBigInt64BE(this.#pass(8)));
    if (mark >= 0xd4 && mark <= 0xd8) return this.#extension(1 << (mark - 0xd4));
    if (mark >= 0xd9 && mark <= 0xdb) return this.#text(this.#uint(1 << (mark - 0xd9)));
    if (mark === 0xdc || mark === 0xdd) return this.#list(this.#uint(2 << (mark - 0xdc)));
    if (mark === 0xde || mark === 0xdf) return this.#map(this.#uint(2 << (mark - 0xde)));
    throw new TypeError(`byte 0x${mark.toString(16)} is never used`);
  }

  #list(count: number): unknown[] {
    const items: unknown[] = [];
    for (let i = 0; i < count; i += 1) items.push(this.value());
    return items;
  }

  /** Any key, also `__proto__`, becomes an own property. */
  #map(count: number): object {
    const entries: [string, unknown][] = [];
    for (let i = 0; i < count; i += 1) entries.push([String(this.value()), this.value()]);
    return Object.fromEntries(entries);
  }

  #extension(length: number): unknown {
    const type = this.#uint(1);
    if (type === TENSOR) return this.#tensor(this.#at + length);
    if (type !== TIMESTAMP || length !== TIMESTAMP_BYTES)
      throw new TypeError(`extension type ${type} is not supported`);
    const ms = this.#uint(4) / 1e6;
    return new Date(Number(this.#bytes.readBigInt64BE(this.#pass(8))) * 1000 + ms);
  }

  #tensor(end: number): unknown {
    const datatype = this.value() as Datatype;
    const shape = this.value() as number[];
    const data = datatype === 'BYTES' ? this.value() : this.#elements(datatype, shape, end);
    return asProgramHasIt(new Tensor(datatype, shape, data as TensorData[Datatype]));
  }

  #elements(datatype: Datatype, shape: readonly number[], end: number): ArrayLike<unknown> {
    const bytes = this.#take(end - this.#at);
    const data = newData(datatype, elementCount(shape)) as Uint8Array;
    if (bytes.length !== data.byteLength)
      throw new TypeError(`${bytes.length} bytes are no ${datatype} of the shape [${shape.join()}]`);
    new Uint8Array(data.buffer).set(bytes);
    return data;
  }

  #text(length: number): string {
    return this.#bytes.toString('utf8', this.#pass(length), this.#at);
  }

  #uint(size: number): number {
    return this.#bytes.readUIntBE(this.#pass(size), size);
  }

  #int(size: number): number {
    return this.#bytes.readIntBE(this.#pass(size), size);
  }

  #take(count: number): Buffer {
    return this.#bytes.subarray(this.#pass(count), this.#at);
  }

  /** Passes so many bytes, and returns their place. */
  #pass(count: number): number {
    const start = this.#at;
    this.#at += count;
    if (this.#at > this.#bytes.length) throw new TypeError('it ends inside a value');
    return start;
  }
}

function asNumber(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

function read(bytes: Buffer): { readonly value: unknown; readonly hasViews: boolean } {
  try {
    return { value: new Reader(bytes).value(), hasViews: false };
  } catch (cause) {
    throw unreadable(cause);
  }
}

function write(value: unknown, name: string, code: ErrorCode): Buffer {
  const writer = new Writer();
  try {
    writer.value(value);
    return writer.written;
  } catch (cause) {
    const { path } = writer;
    const place = path.length >= MAX_DEPTH ? name : name + path.map(shown).join('');
    throw unwritable(code, `${place} ${describeThrown(cause).message}.`, cause);
  }
}

export const MSGPACK_VALUES: ValueFormat = { read, write };
