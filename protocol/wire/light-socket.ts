/**
 * A socket that reads into one buffer and hands out copies of what came, as `data` events; only much is handed out as
 * it lies, and what has memory of its own is read into that. A stream of Node's own makes 64 KiB of zeroed memory for each read, and three turns of bookkeeping: 8 us of
 * a call that takes 100 (docs/benchmarks.md).
 */
import { Socket } from 'node:net';

const READ_BYTES = 64 * 1024;

/** Smaller reads are copied, so that they do not keep the whole read buffer alive. */
const MUCH_BYTES = READ_BYTES / 2;

/** Read behind the end of a target: the head of the next fragment fits, and little of what has a target of its own. */
const NEXT_HEAD_BYTES = 64;

/** Memory that bytes are read into right away, where they are to stay. */
export interface ReadTarget {
  /** Where the next bytes belong; null: nowhere in particular. Asked before each read. */
  room(): Buffer | null;
  /** So many bytes are in the room that was given last. */
  filled(bytes: number): void;
}

/** A stream that can read into memory of its reader's; what has no room there comes as `data` events. */
export interface TargetedStream {
  readInto(target: ReadTarget): void;
}

export type LightSocket = Socket & TargetedStream;

/** `net.Socket` takes `onread` in its constructor too; its types know it for `connect` only. */
interface LightOptions {
  readonly fd?: number;
  readonly handle?: object;
  readonly readable: true;
  readonly writable: false;
  readonly onread: { buffer: () => Uint8Array; callback: (bytes: number) => boolean };
}

/** Reads the socket of this process that has this number. */
export function lightSocket(fd: number): LightSocket {
  return readLightly({ fd });
}

/**
 * The reading end of `socket` again, as a light one; the old one is dead. `_handle` is a field of Node's own: where it
 * is not what it used to be, the socket stays as it is, and works.
 */
export function lighten(socket: Socket): Socket {
  const owner = socket as unknown as { _handle?: { useUserBuffer?: unknown } | null };
  const handle = owner._handle;
  if (typeof handle?.useUserBuffer !== 'function') return socket;
  owner._handle = null;
  return readLightly({ handle });
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
      buffer: next, // asked for before each read
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
