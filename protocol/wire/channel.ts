/**
 * Sends and receives messages over two byte streams; both ends use this class.
 *
 * There are two outgoing lanes. Control frames leave at the next `flush`. Bodies longer than one fragment wait in the
 * second lane and leave one fragment at a time as the stream drains, so a cancel waits for a few fragments at most.
 * Nothing is written before `flush`: a burst of messages is one write.
 *
 * Input and output are separate streams (fd 3 and fd 4 of a worker) because Node destroys a duplex on a write error
 * (EPIPE after a kill), and with it the answers that the kernel still holds.
 */
import type { Readable, Writable } from 'node:stream';
import { decodeHead, encodeHead } from './codec.js';
import { ServeError, protocolError } from '../errors.js';
import { FRAME_PREFIX_BYTES, FrameReader } from './frame.js';
import type { LightSocket } from './light-socket.js';
import { MAX_FRAGMENT_BYTES } from './limits.js';
import type { Message } from './messages.js';

export interface ChannelHandlers {
  /** One decoded message and its body, in pieces the handler owns. Called synchronously, in order. */
  onMessage(message: Message, pieces: Buffer[]): void;
  /**
   * Called while the body of this message is still arriving: returns memory of `bodyBytes` bytes for it, which then is
   * its only piece; null if there is none yet.
   */
  room?(message: Message, bodyBytes: number): Buffer | null;
  /** All messages of one read have been delivered. */
  onReadEnd?(): void;
  /** The peer's last frame was read, or the stream is broken. Called once. */
  onEnd(error: ServeError | null): void;
  /** Bytes can no longer be sent; messages that the peer sent earlier may still arrive. */
  onWriteError(error: Error): void;
}

/** A message whose body may need several frames. */
interface BodyTransfer {
  readonly id: number;
  readonly first: Message;
  readonly pieces: readonly Uint8Array[];
  /** Position of the next unsent byte: index of the piece, and offset in it. */
  piece: number;
  offset: number;
  left: number;
  started: boolean;
}

/** Smaller parts are copied into one buffer; larger ones are written with a gathering write (bench/channel.ts). */
const COPY_LIMIT_BYTES = 4 * 1024;

/**
 * Bytes of fragments written to the stream ahead of the kernel: enough to keep it busy, few enough that control frames
 * pass soon.
 */
const AHEAD_BYTES = 2 * MAX_FRAGMENT_BYTES;

export class Channel {
  readonly #out: Writable;
  readonly #writeNow: ((bytes: Uint8Array) => number) | null;
  readonly #handlers: ChannelHandlers;
  readonly #reader: FrameReader;
  #pending: Uint8Array[] = [];
  #pendingBytes = 0;
  #transfers: BodyTransfer[] = [];
  #flushedCallbacks: (() => void)[] = [];
  #ended = false;

  /**
   * `writeNow`: writes as much as the kernel takes at once and returns the number of bytes; 0 if it takes none or fails. It
   * bypasses `out`, in half the time, while nothing is queued there; the rest is written to `out`.
   */
  constructor(
    input: Readable,
    out: Writable,
    handlers: ChannelHandlers,
    writeNow: ((bytes: Uint8Array) => number) | null = null,
  ) {
    this.#out = out;
    this.#writeNow = writeNow;
    this.#handlers = handlers;
    this.#reader = new FrameReader(
      (source, start, end, pieces) => handlers.onMessage(decodeHead(source, start, end), pieces),
      (source, start, end, bytes) => handlers.room?.(decodeHead(source, start, end), bytes) ?? null,
    );
    input.on('data', (chunk: Buffer) => this.#read(chunk));
    if ('readInto' in input) {
      (input as LightSocket).readInto(
        () => (this.#ended ? null : this.#reader.room),
        (bytes) => this.#read(bytes),
      );
    }
    input.on('error', () => this.#end(null));
    input.on('end', () =>
      this.#end(this.#reader.atBoundary ? null : protocolError('the stream ended inside a frame')),
    );
    input.on('close', () => this.#end(null));
    out.on('error', (error) => handlers.onWriteError(error));
  }

  /**
   * True if everything sent so far is in the kernel, and so survives the death of this process. A failed write leaves
   * nothing unwritten either, and Node reports it a tick later, so the stream's own state counts too.
   */
  get flushed(): boolean {
    const { writableLength, errored, destroyed } = this.#out;
    if (errored !== null || destroyed) return false;
    return this.#pendingBytes === 0 && this.#transfers.length === 0 && writableLength === 0;
  }

  /** True while body fragments wait for the stream to drain. */
  get hasTransfers(): boolean {
    return this.#transfers.length > 0;
  }

  /** Queues a frame for the next `flush`, ahead of unsent body fragments. `body` has at most one fragment. */
  send(message: Message, body?: Uint8Array): void {
    this.#append(encodeHead(message), body === undefined ? [] : [body], body?.length ?? 0);
  }

  /**
   * Queues one call or result with a body of any size. The pieces belong to the channel until sent and must not
   * change. Large bodies leave one after the other, in the order of these calls.
   */
  sendBody(
    message: Message & { id?: number },
    id: number,
    pieces: readonly Uint8Array[],
    bytes: number,
  ): void {
    if (bytes <= MAX_FRAGMENT_BYTES && this.#transfers.length === 0) {
      this.#append(encodeHead(message), pieces, bytes);
      return;
    }
    this.#transfers.push({ id, first: message, pieces, piece: 0, offset: 0, left: bytes, started: false });
  }

  /** True while part of this body has not been written to the stream. */
  isSending(id: number): boolean {
    return this.#transfers.some((transfer) => transfer.id === id);
  }

  /**
   * Drops the unsent part of a body. Returns false if its first frame was never sent, so that the peer does not know
   * the body.
   */
  dropBody(id: number): boolean {
    const index = this.#transfers.findIndex((transfer) => transfer.id === id);
    if (index < 0) return true;
    const [dropped] = this.#transfers.splice(index, 1);
    return (dropped as BodyTransfer).started;
  }

  /** Writes everything queued to the stream in one write, then as many body fragments as fit. */
  flush(): void {
    if (this.#ended) return;
    if (this.#pendingBytes > 0) this.#writePending();
    while (this.#transfers.length > 0 && this.#out.writableLength < AHEAD_BYTES) {
      this.#sendFragment(this.#transfers[0] as BodyTransfer);
      this.#writePending();
    }
  }

  /** Calls back once everything sent so far is in the kernel: immediately if it is, never if a write fails. */
  onceFlushed(callback: () => void): void {
    if (this.flushed) callback();
    else this.#flushedCallbacks.push(callback);
  }

  /** Ends the outgoing stream after what is queued. */
  close(): void {
    this.flush();
    this.#out.end();
  }

  /** Takes bytes that were read, or the number of bytes that were read into the body's own memory. */
  #read(came: Buffer | number): void {
    if (this.#ended) return;
    try {
      if (typeof came === 'number') this.#reader.filled(came);
      else this.#reader.push(came);
      this.#handlers.onReadEnd?.();
    } catch (thrown) {
      if (!(thrown instanceof ServeError)) throw thrown;
      this.#end(thrown);
    }
  }

  #end(error: ServeError | null): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#transfers = [];
    this.#pending = [];
    this.#pendingBytes = 0;
    this.#handlers.onEnd(error);
  }

  #append(head: Uint8Array, pieces: readonly Uint8Array[], bodyBytes: number): void {
    const prefix = Buffer.allocUnsafe(FRAME_PREFIX_BYTES);
    prefix.writeUInt32LE(head.length, 0);
    prefix.writeUInt32LE(bodyBytes, 4);
    this.#pending.push(prefix, head);
    for (const piece of pieces) this.#pending.push(piece); // spreading a large array would overflow the stack
    this.#pendingBytes += FRAME_PREFIX_BYTES + head.length + bodyBytes;
  }

  #sendFragment(transfer: BodyTransfer): void {
    const { pieces, bytes } = takeFragment(transfer);
    const message: Message = transfer.started
      ? { type: 'body', id: transfer.id }
      : withInline(transfer, bytes);
    transfer.started = true;
    this.#append(encodeHead(message), pieces, bytes);
    if (transfer.left === 0) this.#transfers.shift();
  }

  #writePending(): void {
    const buffers = joinSmallParts(this.#pending);
    this.#pending = [];
    this.#pendingBytes = 0;
    const writeNow = this.#writeNow;
    if (writeNow !== null && buffers.length === 1 && this.#wroteNow(writeNow, buffers as [Uint8Array]))
      return;
    const last = buffers.length - 1;
    if (last > 0) this.#out.cork();
    for (let i = 0; i < last; i += 1) this.#out.write(buffers[i]);
    this.#out.write(buffers[last], this.#onWritten);
    if (last > 0) this.#out.uncork();
  }

  /** Returns false if a rest is left, which then replaces the buffer. */
  #wroteNow(writeNow: (bytes: Uint8Array) => number, buffers: [Uint8Array]): boolean {
    if (this.#out.writableLength > 0 || this.#out.destroyed) return false;
    const [buffer] = buffers;
    const written = writeNow(buffer);
    buffers[0] = buffer.subarray(written);
    if (written < buffer.length) return false;
    this.#runFlushedCallbacks();
    return true;
  }

  readonly #onWritten = (): void => {
    if (this.#transfers.length > 0) this.flush();
    this.#runFlushedCallbacks();
  };

  #runFlushedCallbacks(): void {
    if (this.#flushedCallbacks.length === 0 || !this.flushed) return;
    const callbacks = this.#flushedCallbacks;
    this.#flushedCallbacks = [];
    for (const callback of callbacks) callback();
  }
}

/** Returns the same bytes in fewer buffers: adjacent small ones are joined. */
function joinSmallParts(parts: readonly Uint8Array[]): Uint8Array[] {
  const buffers: Uint8Array[] = [];
  let from = 0;
  let smallBytes = 0;
  for (let i = 0; i <= parts.length; i += 1) {
    const part = parts[i];
    if (part !== undefined && part.length < COPY_LIMIT_BYTES) {
      smallBytes += part.length;
      continue;
    }
    if (smallBytes > 0) buffers.push(Buffer.concat(parts.slice(from, i), smallBytes));
    if (part !== undefined) buffers.push(part);
    from = i + 1;
    smallBytes = 0;
  }
  return buffers;
}

/** Returns the next bytes of a body, at most one fragment, as views. */
function takeFragment(transfer: BodyTransfer): { pieces: Uint8Array[]; bytes: number } {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  while (transfer.left > 0 && bytes < MAX_FRAGMENT_BYTES) {
    const piece = transfer.pieces[transfer.piece] as Uint8Array;
    const taken = Math.min(piece.length - transfer.offset, MAX_FRAGMENT_BYTES - bytes);
    pieces.push(piece.subarray(transfer.offset, transfer.offset + taken));
    bytes += taken;
    transfer.left -= taken;
    transfer.offset += taken;
    if (transfer.offset === piece.length) {
      transfer.piece += 1;
      transfer.offset = 0;
    }
  }
  return { pieces, bytes };
}

/** Adds the number of bytes of each body in this frame to a call frame. */
function withInline(transfer: BodyTransfer, bytes: number): Message {
  return transfer.first.type === 'call' ? { ...transfer.first, inlineBytes: [bytes] } : transfer.first;
}
