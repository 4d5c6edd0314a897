/**
 * A socket that reads into one buffer of its own and emits copies of the bytes as `data` events. Reads of 32 KiB and more
 * are emitted without a copy, and bytes whose memory is allocated already are read straight into that. A plain
 * `net.Socket` allocates 64 KiB of zeroed memory and takes three ticks for each read: 8 us of a call that takes 100
 * (docs/benchmarks.md).
 */
import { Socket } from 'node:net';

const READ_BYTES = 64 * 1024;

/** Reads below this size are copied, so that they do not keep the whole read buffer alive. */
const MUCH_BYTES = READ_BYTES / 2;

/** Size of the read after a target is full: the head of the next fragment fits, and little of its body. */
const NEXT_HEAD_BYTES = 64;

export type LightSocket = Socket & {
  /**
   * Reads into its user's memory from now on. `room`: called before each read, returns memory for the next bytes; null: they
   * are emitted as `data`. `filled`: called when so many bytes were read into the memory that `room` returned last.
   */
  readInto(room: () => Buffer | null, filled: (bytes: number) => void): void;
};

/** Reads file descriptor `fd`, which must be a socket or a pipe. */
export function lightSocket(fd: number): LightSocket {
  return readLightly({ fd });
}

/**
 * Returns a light socket that reads on from `socket`, which is dead then; `socket` itself if its handle cannot read into a
 * user's buffer. There is no documented way to move an open socket into one with the option `onread`, so the handle is taken
 * from a private field of Node, which test/house/node-internals.test.ts names if a new Node lacks it.
 */
export function lighten(socket: Socket): Socket {
  const internals = socket as unknown as { _handle?: { readonly useUserBuffer?: unknown } | null };
  const handle = internals._handle;
  if (typeof handle?.useUserBuffer !== 'function') return socket;
  internals._handle = null;
  return readLightly({ handle });
}

function readLightly(source: { readonly fd: number } | { readonly handle: object }): LightSocket {
  let findRoom: () => Buffer | null = () => null;
  let onFilled: (bytes: number) => void = () => {};
  let room: Buffer | null = null;
  const headBuffer = Buffer.allocUnsafeSlow(NEXT_HEAD_BYTES);
  let wideBuffer = Buffer.allocUnsafeSlow(READ_BYTES);
  let buffer = wideBuffer;
  const next = (): Buffer => {
    const wasTargeted = room !== null;
    room = findRoom();
    if (room !== null) return room;
    buffer = wasTargeted ? headBuffer : wideBuffer;
    return buffer;
  };
  // It takes `onread` in its constructor too; its types declare it for `connect` only.
  const options = {
    ...source,
    readable: true,
    writable: false,
    onread: {
      buffer: next, // called before each read
      callback: (bytes: number): boolean => {
        if (room !== null) {
          onFilled(bytes);
          return true;
        }
        const read = buffer.subarray(0, bytes);
        if (bytes < MUCH_BYTES) return socket.emit('data', Buffer.from(read));
        wideBuffer = Buffer.allocUnsafeSlow(READ_BYTES);
        return socket.emit('data', read);
      },
    },
  };
  const socket = new Socket(options);
  return Object.assign(socket, {
    readInto(find: () => Buffer | null, filled: (bytes: number) => void): void {
      findRoom = find;
      onFilled = filled;
    },
  });
}
