/**
 * A socket that reads into one buffer of its own and emits copies of the bytes as `data` events. Reads of 32 KiB and more
 * are emitted without a copy, and bytes whose memory is allocated already are read straight into that. A plain
 * `net.Socket` allocates 64 KiB of zeroed memory and takes three ticks for each read: 8 us of a call that takes 100
 * (docs/benchmarks.md).
 */
import { Socket } from 'node:net';
import { takeHandle } from './node-internals.js';

const READ_BYTES = 64 * 1024;

/** Reads below this size are copied, so that they do not keep the whole read buffer alive. */
const MUCH_BYTES = READ_BYTES / 2;

/** Size of the read after a target is full: the head of the next fragment fits, and little of its body. */
const NEXT_HEAD_BYTES = 64;

/** Gives the memory that bytes are read into directly. */
export interface ReadTarget {
  /** Memory for the next bytes; null: the socket emits them as `data`. Called before each read. */
  room(): Buffer | null;
  /** Called when `bytes` bytes were read into the memory that `room` returned last. */
  filled(bytes: number): void;
}

/** A stream that can read into its user's memory; it emits bytes without such memory as `data` events. */
export interface TargetedStream {
  readInto(target: ReadTarget): void;
}

export type LightSocket = Socket & TargetedStream;

/** `net.Socket` takes `onread` in its constructor too; its types declare it for `connect` only. */
interface LightOptions {
  readonly fd?: number;
  readonly handle?: object;
  readonly readable: true;
  readonly writable: false;
  readonly onread: { buffer: () => Uint8Array; callback: (bytes: number) => boolean };
}

/** Reads file descriptor `fd`, which must be a socket or a pipe. */
export function lightSocket(fd: number): LightSocket {
  return readLightly({ fd });
}

/** Returns a light socket that reads on from `socket`, which is dead then; `socket` itself if Node does not allow it. */
export function lighten(socket: Socket): Socket {
  const handle = takeHandle(socket);
  return handle === null ? socket : readLightly({ handle });
}

function readLightly(source: { readonly fd: number } | { readonly handle: object }): LightSocket {
  let target: ReadTarget | null = null;
  let room: Buffer | null = null;
  const headBuffer = Buffer.allocUnsafeSlow(NEXT_HEAD_BYTES);
  let wideBuffer = Buffer.allocUnsafeSlow(READ_BYTES);
  let buffer = wideBuffer;
  const next = (): Buffer => {
    const wasTargeted = room !== null;
    room = target === null ? null : target.room();
    if (room !== null) return room;
    buffer = wasTargeted ? headBuffer : wideBuffer;
    return buffer;
  };
  const take = (bytes: number): Buffer => {
    const read = buffer.subarray(0, bytes);
    if (bytes < MUCH_BYTES) return Buffer.from(read);
    wideBuffer = Buffer.allocUnsafeSlow(READ_BYTES);
    return read;
  };
  const options: LightOptions = {
    ...source,
    readable: true,
    writable: false,
    onread: {
      buffer: next, // called before each read
      callback: (bytes) => {
        if (room === null) return socket.emit('data', take(bytes));
        (target as ReadTarget).filled(bytes);
        return true;
      },
    },
  };
  const socket = new Socket(options);
  return Object.assign(socket, { readInto: (wanted: ReadTarget) => void (target = wanted) });
}
