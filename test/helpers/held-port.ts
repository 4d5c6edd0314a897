/**
 * A port that stays reserved for the test while no program listens on it. A number that was free a moment ago is not: the next program
 * that asks the kernel for any port may get it.
 *
 * A connection that was bound to the port before it connected holds it. The kernel refuses connections to the port, gives
 * it to no program that asks for any port, and still lets a server listen on it that asks for this very number.
 */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/**
 * A port of 127.0.0.1, held until this process ends, which it keeps from nothing. On Linux only: elsewhere no server could
 * listen beside the connection, so the port is merely one that was free.
 */
export async function holdPort(): Promise<number> {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port: otherPort } = other.address() as AddressInfo;
  const holder = connect({ host: '127.0.0.1', port: otherPort, localAddress: '127.0.0.1' });
  const [[accepted]] = await Promise.all([
    once(other, 'connection') as Promise<[Socket]>,
    once(holder, 'connect'),
  ]);
  const port = holder.localPort as number;
  other.close();
  accepted.unref();
  holder.unref();
  if (process.platform !== 'linux') holder.resetAndDestroy();
  return port;
}

/** The URL of a port without a listener. */
export async function deadUrl(): Promise<string> {
  return `http://127.0.0.1:${await holdPort()}`;
}
