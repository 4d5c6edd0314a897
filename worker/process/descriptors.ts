/**
 * The descriptors that this process shares with the front (docs/wire.md). The worker ends when the app has closed or
 * replaced one of them: Node does not notice a descriptor that was closed by other code, and the next opened file gets
 * its number. Prints block until there is room for them.
 */
import { fstatSync } from 'node:fs';

export const UP_FD = 3;
export const DOWN_FD = 4;
export const BEGUN_FD = 5;

/** The original, before `watchAppExit` and the app replace it. */
const exit = process.exit.bind(process);

/**
 * Ends this process if an app has forked it: `cluster.fork()` starts the program of its own process, here the worker, in
 * which Node's channel has the number of ours.
 */
export function refuseFork(): void {
  if (process.channel === undefined) return;
  process.stderr.write(
    "cluster.fork() in an app has started the worker's own program, which cannot run so. Name a file of yours before: cluster.setupPrimary({ exec: fileURLToPath(new URL('./child.js', import.meta.url)) })\n",
  );
  exit(1);
}

/**
 * Interval of the checks in ms, and so the longest time that a call waits for a worker that no longer receives it. A
 * check takes some microseconds.
 */
const LOOK_MS = 250;

/** The file behind each descriptor at the start. */
const FIRST = [UP_FD, DOWN_FD, BEGUN_FD].map((fd) => [fd, identity(fd)] as const);

/** Checks regularly whether fd 4 is lost, which shows nowhere else. The front notices the loss of fd 3. */
export function watchDescriptors(): void {
  setInterval(() => dieIfLost(DOWN_FD), LOOK_MS).unref();
}

/** Ends this worker if the app has closed or replaced a descriptor with the number `from` or above. */
export function dieIfLost(from = UP_FD): void {
  for (const [fd, first] of FIRST) {
    const now = fd < from ? first : identity(fd);
    if (now === first) continue;
    dieOfLost(now === null ? `closed file descriptor ${fd}` : `replaced file descriptor ${fd}`);
  }
}

function dieOfLost(what: string): void {
  process.stderr.write(
    `The worker cannot go on: the app has ${what}, which the worker needs for its connection to the server. Leave descriptors 3 to 5 as they are, even if the app closes all others above 2.\n`,
  );
  exit(1);
}

function identity(fd: number): string | null {
  try {
    const { dev, ino } = fstatSync(fd);
    return `${dev}:${ino}`;
  } catch {
    return null; // it is closed
  }
}

/**
 * Makes prints wait for room in the pipe; there is no documented way, and without the field they are only less prompt. By
 * default Node keeps in memory what does not fit into a pipe: without bound while nothing reads it, written after later prints
 * of native code, and lost when the process dies. Programs that the app starts inherit the same pipe, and few can handle the
 * EAGAIN of a non-blocking one.
 */
export function blockOnOutput(): void {
  // The libuv stream is a private field of Node (test/house/node-internals.test.ts).
  for (const output of [process.stdout, process.stderr] as {
    _handle?: { setBlocking?(on: boolean): void };
  }[])
    output._handle?.setBlocking?.(true);
}
