/**
 * The descriptors that this process shares with the front (docs/wire.md), and its end when the app has taken one of
 * them. Node hears nothing of one that was closed behind its back, and its number goes to the next file that is opened.
 */
import { fstatSync } from 'node:fs';

export const UP_FD = 3;
export const DOWN_FD = 4;
export const BEGUN_FD = 5;

/** Longest time that a call waits for a worker that cannot hear it any more. A look takes some microseconds. */
const LOOK_MS = 250;

/** What stood behind each of them at first. */
const FIRST = [UP_FD, DOWN_FD, BEGUN_FD].map((fd) => [fd, identity(fd)] as const);

/** The real one, before `app-exit.ts` and the app put theirs in its place. */
const exit = process.exit.bind(process);

/** Looks now and then, beside the calls, whether fd 4 is lost, which shows nowhere else. The front sees the loss of fd 3. */
export function watchDescriptors(): void {
  setInterval(() => dieIfLost(DOWN_FD), LOOK_MS).unref();
}

/** Ends this worker if the app has closed a descriptor, of this number or above, or a file of the app's has the number now. */
export function dieIfLost(from = UP_FD): void {
  for (const [fd, first] of FIRST) {
    const now = fd < from ? first : identity(fd);
    if (now === first) continue;
    dieOfLost(now === null ? `closed file descriptor ${fd}` : `put another file over file descriptor ${fd}`);
  }
}

function dieOfLost(what: string): void {
  process.stderr.write(
    `The worker cannot go on: the app has ${what}, through which it speaks with the server. Let the app leave descriptors 3 to 5 alone, which closing all above 2 does not.\n`,
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
