/**
 * Values of JavaScript as V8 itself writes them, between a program and the worker of its function: typed arrays, Buffers,
 * Dates, Maps, Sets, bigints, undefined, errors and cycles stay what they are; an object of a class crosses as its own fields.
 */
import { DefaultDeserializer, serialize } from 'node:v8';
import { describeThrown, type ErrorCode } from '../errors.js';
import { unreadable, unwritable, type ValueFormat } from './value-format.js';

/** Version of the format, which stands in its second byte: each side reads its own and older ones. */
export const V8_VERSION = serialize(null)[1] as number;

/** Smaller arrays get memory of their own, so that they do not keep the whole message alive. */
const COPIED_BYTES = 64 * 1024;

class ValueReader extends DefaultDeserializer {
  /** Whether large arrays of the value are views of its bytes. */
  hasViews = false;

  /** Called by V8 for each typed array, Buffer and DataView. */
  _readHostObject(): unknown {
    const { _readHostObject: read } = DefaultDeserializer.prototype as unknown as Reading;
    const view = read.call(this);
    if (view.byteLength >= COPIED_BYTES) {
      this.hasViews = true;
      return view;
    }
    if (Buffer.isBuffer(view)) return Buffer.from(view);
    if (view instanceof DataView)
      return new DataView(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
    return (view as Uint8Array).slice();
  }
}

interface Reading {
  _readHostObject(this: ValueReader): ArrayBufferView;
}

function read(bytes: Uint8Array): { readonly value: unknown; readonly hasViews: boolean } {
  try {
    const reader = new ValueReader(bytes);
    reader.readHeader();
    const value: unknown = reader.readValue();
    return { value, hasViews: reader.hasViews };
  } catch (cause) {
    throw unreadable(cause);
  }
}

function write(value: unknown, name: string, code: ErrorCode): Buffer {
  try {
    return serialize(value);
  } catch (cause) {
    const what = findUnwritable(value, name, new Set(), 0) ?? `${name}: ${describeThrown(cause).message}`;
    throw unwritable(code, what, cause);
  }
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
