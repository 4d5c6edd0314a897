/**
 * Sends iterators as a streamed reply: one item at a time, only while the front has granted credit, so a slow reader
 * slows the generator and nothing piles up. Ends either in `end` or in a rejection.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { MAX_FRAGMENT_BYTES } from '../../protocol/wire/limits.js';
import type { ReplyHead } from '../../protocol/wire/messages.js';
import { asksFor } from './encode-output.js';
import { PLAIN_HEAD, type AnyIterator } from '../formats/reply.js';
import { encodeJson, jsonText } from '../values/json-encoding.js';
import { isThenable } from '../values/not-data.js';

/** The receiver of a stream's messages; `run/credit.ts` implements it over the channel. */
export interface StreamOut {
  head(head: ReplyHead): void;
  chunk(bytes: Uint8Array): void;
  /** Null if at least one more byte may be sent; otherwise a promise that resolves once it may, or when cancelled. */
  wait(): Promise<void> | null;
  readonly cancelled: boolean;
}

/** Maximum time without reading cancels and credit, because a synchronous generator may block the thread. */
const YIELD_EVERY_MS = 5;

/**
 * Returns the iterator of a value that streams, otherwise null. Iterators, generators and byte streams do; arrays,
 * strings, Maps and other collections are values.
 */
export function iteratorOf(value: unknown): AnyIterator | null {
  if (typeof value !== 'object' || value === null) return null;
  const candidate = value as Partial<AsyncIterable<unknown> & Iterable<unknown> & Iterator<unknown>>;
  if (typeof candidate[Symbol.asyncIterator] === 'function') {
    return (value as AsyncIterable<unknown>)[Symbol.asyncIterator]();
  }
  if (typeof candidate.next === 'function' && typeof candidate[Symbol.iterator] === 'function') {
    return (value as Iterable<unknown>)[Symbol.iterator]();
  }
  return null;
}

/**
 * Sends every item. The head leaves with the first non-empty chunk, so an early error is still a whole error reply, and
 * so is a first item that cannot be encoded. `fixedHead`: null if the client's Accept header determines the encoding.
 * `typeFromItem`: the first item determines its content type.
 * Rejects with the error of the iterator; calls its `return()` when the client has left or an item cannot be encoded.
 */
export async function sendStream(
  iterator: AnyIterator,
  accept: string,
  fixedHead: ReplyHead | null,
  out: StreamOut,
  typeFromItem = false,
): Promise<void> {
  const encoder = fixedHead === null ? encoderFor(accept) : rawItems(fixedHead, typeFromItem);
  let head: ReplyHead | null = null;
  let headSent = false;
  let yieldedAtMs = performance.now();
  while (!out.cancelled) {
    const step: IteratorResult<unknown, unknown> | Promise<IteratorResult<unknown, unknown>> =
      iterator.next();
    const { done, value } = isThenable(step) ? await step : step;
    if (out.cancelled) break;
    let bytes: Uint8Array | null = null;
    try {
      if (done !== true) bytes = encoder.item(value);
    } catch (thrown) {
      await iterator.return?.(); // its `finally` blocks free its resources
      throw thrown;
    }
    head ??= encoder.head(done === true ? NOTHING : value);
    if (!headSent && bytes?.length !== 0) {
      out.head(head);
      headSent = true;
    }
    if (bytes === null) return;
    await sendBytes(bytes, out);
    if (performance.now() - yieldedAtMs > YIELD_EVERY_MS) {
      await nextTurn();
      yieldedAtMs = performance.now();
    }
  }
  await iterator.return?.();
}

async function sendBytes(bytes: Uint8Array, out: StreamOut): Promise<void> {
  for (let offset = 0; offset < bytes.length; offset += MAX_FRAGMENT_BYTES) {
    const credit = out.wait();
    if (credit !== null) await credit;
    if (out.cancelled) return;
    out.chunk(bytes.subarray(offset, offset + MAX_FRAGMENT_BYTES));
  }
}

/** Stands for the first item of an empty stream. */
const NOTHING = Symbol('no item');

interface ItemEncoder {
  /** Returns the head of the reply; `first` is the first item, NOTHING if there is none. */
  head(first: unknown): ReplyHead;
  item(item: unknown): Uint8Array;
}

function encoderFor(accept: string): ItemEncoder {
  if (asksFor(accept, 'text/event-stream')) return EVENTS;
  if (asksFor(accept, 'application/x-ndjson') || asksFor(accept, 'application/ndjson')) return JSON_LINES;
  return rawItems(PLAIN_HEAD, true);
}

const EVENTS: ItemEncoder = {
  head: () => ({ ...PLAIN_HEAD, contentType: 'text/event-stream', headers: 'Cache-Control\nno-cache' }),
  item: (item) => event(typeof item === 'string' ? item : jsonText(item)),
};

/** Encodes text as an event. Each of its lines becomes a `data:` field (HTML standard, 9.2.6). */
function event(text: string): Buffer {
  return Buffer.from(`data: ${text.replace(/\r\n|\r|\n/g, '\ndata: ')}\n\n`);
}

const JSON_LINES: ItemEncoder = {
  head: () => ({ ...PLAIN_HEAD, contentType: 'application/x-ndjson' }),
  item: jsonLine,
};

function jsonLine(item: unknown): Buffer {
  return Buffer.concat([encodeJson(item), NEWLINE]);
}

/**
 * Sends bytes and text unchanged, because an app with its own head may write events itself; other values by its content
 * type.
 */
function rawItems(head: ReplyHead, typeFromItem: boolean): ItemEncoder {
  const isEvents = /^text\/event-stream\b/i.test(head.contentType);
  const encode = isEvents ? (item: unknown): Buffer => event(jsonText(item)) : jsonLine;
  return {
    head: (first) => (typeFromItem ? { ...head, contentType: chunkType(first) } : head),
    item: (item) => rawBytes(item) ?? encode(item),
  };
}

const NEWLINE = Buffer.from('\n');

function rawBytes(item: unknown): Uint8Array | null {
  if (typeof item === 'string') return Buffer.from(item);
  return item instanceof Uint8Array ? item : null;
}

/** Returns the content type of a stream with this first item. */
function chunkType(first: unknown): string {
  if (typeof first === 'string') return 'text/plain; charset=utf-8';
  return first === NOTHING || first instanceof Uint8Array
    ? 'application/octet-stream'
    : 'application/x-ndjson';
}
