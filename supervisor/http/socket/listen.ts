/** Opens and closes the TCP port or the unix socket, and warns when the process can accept no more connections. */
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { handleOf } from './node-internals.js';

export interface Listening {
  readonly url: string;
  readonly socketPath: string | null;
  /** Stops accepting connections; resolves once the open ones have ended or the grace period has passed. */
  close(): Promise<void>;
  /** Cuts all connections at once. */
  destroy(): void;
}

/** Replies already written reach their clients within this time, or not at all. */
const CLOSE_GRACE_MS = 1000;

/**
 * Rejects with the system's error (EADDRINUSE, EACCES, …). `isPrivate`: only the user that the server runs as may connect to
 * the unix socket.
 */
export async function listen(
  server: Server,
  host: string,
  port: number | string,
  { isPrivate, isTls }: { readonly isPrivate: boolean; readonly isTls: boolean },
): Promise<Listening> {
  const socketPath = typeof port === 'string' ? port : null;
  if (socketPath !== null) await removeStaleSocket(socketPath);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    const done = (): void => {
      server.off('error', reject);
      resolve();
    };
    if (typeof port === 'number') server.listen(port, host, done);
    else if (isPrivate) listenPrivately(server, port, done);
    else server.listen(port, done);
  });
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    if (sockets.has(socket)) return; // the same socket again, after an upgrade that was declined
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return {
    url: urlOf(server, host, socketPath, isTls),
    socketPath,
    close: () => closeServer(server, sockets),
    destroy: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Node creates the socket before `listen` returns, so the socket never has other permissions. */
function listenPrivately(server: Server, path: string, done: () => void): void {
  const before = process.umask(0o177);
  try {
    server.listen(path, done);
  } finally {
    process.umask(before);
  }
}

function urlOf(server: Server, host: string, socketPath: string | null, isTls: boolean): string {
  if (socketPath !== null) return `unix:${socketPath}`;
  const { port } = server.address() as AddressInfo;
  const isAny = host === '0.0.0.0' || host === '::';
  const name = isAny ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  return `${isTls ? 'https' : 'http'}://${name}:${port}`;
}

function closeServer(server: Server, sockets: ReadonlySet<Socket>): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => {
      for (const socket of sockets) socket.destroy();
    }, CLOSE_GRACE_MS);
    server.close(() => {
      clearTimeout(cut);
      resolve();
    });
    server.closeIdleConnections();
  });
}

/**
 * Removes a socket file that a killed server left, which would block the address; one that answers is in use and stays.
 */
async function removeStaleSocket(path: string): Promise<void> {
  const refused = await new Promise<boolean>((resolve) => {
    const probe = connect(path);
    probe.once('connect', () => {
      probe.destroy();
      resolve(false);
    });
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
  });
  if (refused) await rm(path, { force: true });
}

/** Descriptors below the limit at which the warning comes. */
const SPARE = 4;

/** Pause between two warnings. */
const QUIET_MS = 60_000;

/**
 * Returns a function to call with each new connection, which warns when the process has no file descriptors left. Node then
 * closes new connections without an event, so the descriptor of each accepted connection is compared with the limit: the
 * system always gives the lowest free one.
 */
export function warnOfOpenFiles(warn: (text: string) => void): (socket: Socket) => void {
  const maxFiles = maxOpenFiles();
  let quietUntilMs = 0;
  return (socket) => {
    const fd = handleOf(socket)?.fd ?? -1;
    if (maxFiles === null || fd < maxFiles - SPARE || performance.now() < quietUntilMs) return;
    quietUntilMs = performance.now() + QUIET_MS;
    warn(
      `the server has used up its ${maxFiles} file descriptors: new connections are closed, and workers cannot start; raise the limit (ulimit -n, LimitNOFILE=)`,
    );
  };
}

/** The limit on descriptors of this process, where the system shows it (Linux). */
function maxOpenFiles(): number | null {
  try {
    const limit = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1];
    return limit === undefined ? null : Number(limit);
  } catch {
    return null;
  }
}
