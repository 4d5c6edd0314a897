/**
 * A socket that reads into one buffer and hands out copies of what came, as `data` events; only much is handed out as
 * it lies. A stream of Node's own makes 64 KiB of zeroed memory for each read, and three turns of bookkeeping: 8 us of
 * a call that takes 100 (docs/benchmarks.md).
 */
import { Socket } from 'node:net';

const READ_BYTES = 64 * 1024;

/** Smaller reads are copied, so that they do not keep the whole read buffer alive. */
const MUCH_BYTES = READ_BYTES / 2;

/** `net.Socket` takes `onread` in its constructor too; its types know it for `connect` only. */
interface LightOptions {
  readonly fd?: number;
  readonly handle?: object;
  readonly readable: true;
  readonly writable: false;
  readonly onread: { buffer: () => Uint8Array; callback: (bytes: number) => boolean };
}

/** Reads the socket of this process that has this number. */
export function lightSocket(fd: number): Socket {
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

function readLightly(source: { readonly fd: number } | { readonly handle: object }): Socket {
  let buffer = Buffer.allocUnsafeSlow(READ_BYTES);
  const take = (bytes: number): Buffer => {
    const read = buffer.subarray(0, bytes);
    if (bytes < MUCH_BYTES) return Buffer.from(read);
    buffer = Buffer.allocUnsafeSlow(READ_BYTES);
    return read;
  };
  const options: LightOptions = {
    ...source,
    readable: true,
    writable: false,
    onread: {
      buffer: () => buffer, // asked for before each read
      callback: (bytes) => socket.emit('data', take(bytes)),
    },
  };
  const socket = new Socket(options);
  return socket;
}
