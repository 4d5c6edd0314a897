/** Streams for tests of a channel: one that shows each write and can hold it, and a real pair of sockets. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable, type Readable } from 'node:stream';
import type { TestContext } from 'node:test';
import { joinPieces } from '../../protocol/wire/body-assembler.js';
import { decodeHead } from '../../protocol/wire/codec.js';
import { FrameReader } from '../../protocol/wire/frame.js';
import type { Message } from '../../protocol/wire/messages.js';

export interface Received {
  readonly message: Message;
  readonly body: Buffer;
}

/** Returns all messages in `bytes`, which must end at the end of a frame. */
export function readFrames(bytes: Buffer): Received[] {
  const received: Received[] = [];
  const reader = new FrameReader((source, start, end, pieces) => {
    received.push({ message: decodeHead(source, start, end), body: joinPieces(pieces) });
  });
  reader.push(bytes);
  if (!reader.atBoundary) throw new Error('the bytes end inside a frame');
  return received;
}

/** Records every write as the kernel would see it; while held, takes one write and leaves it unfinished. */
export class Tap extends Writable {
  readonly writes: Buffer[] = [];
  #held = false;
  #release: (() => void) | null = null;

  constructor() {
    super({ highWaterMark: 64 * 1024 });
  }

  get bytes(): Buffer {
    return Buffer.concat(this.writes);
  }

  get received(): Received[] {
    return readFrames(this.bytes);
  }

  /** Message types of each write. */
  get typesPerWrite(): string[][] {
    return this.writes.map((write) => readFrames(write).map(({ message }) => message.type));
  }

  hold(): void {
    this.#held = true;
  }

  /** Finishes the held write and holds the next. */
  step(): void {
    const release = this.#release;
    this.#release = null;
    release?.();
  }

  /** Finishes the held write and all that follow. */
  release(): void {
    this.#held = false;
    this.step();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#take(Buffer.from(chunk), done);
  }

  override _writev(chunks: { chunk: Buffer; encoding: BufferEncoding }[], done: () => void): void {
    this.#take(Buffer.concat(chunks.map(({ chunk }) => chunk)), done);
  }

  #take(bytes: Buffer, done: () => void): void {
    this.writes.push(bytes);
    if (this.#held) this.#release = done;
    else done();
  }
}

/** Two connected sockets that read nothing until asked; gone when the test is over. */
export async function socketPair(t: TestContext): Promise<{ a: Socket; b: Socket }> {
  const folder = mkdtempSync(join(tmpdir(), 'banana-serve-'));
  const server = createServer({ allowHalfOpen: true });
  server.listen(join(folder, 'socket'));
  await once(server, 'listening');
  const b = connect({ path: join(folder, 'socket'), allowHalfOpen: true });
  const [[a]] = (await Promise.all([once(server, 'connection'), once(b, 'connect')])) as unknown as [
    [Socket],
  ];
  server.close();
  rmSync(folder, { recursive: true });
  t.after(() => {
    a.destroy();
    b.destroy();
  });
  return { a, b };
}

/** Resolves once the stream is closed, after an error too. */
export function closed(stream: Readable | Writable): Promise<void> {
  return new Promise((resolve) => stream.once('close', resolve));
}

/** The next turn of the event loop: everything that was ready by now has been handled. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
}

/** A promise and the function that settles it. */
export function deferred<T = void>(): Deferred<T> {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
