/**
 * Warns when the process has no file descriptors left. Node then closes new connections without an event, so the
 * descriptor of each accepted connection is compared with the limit: the system always gives the lowest free one.
 */
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { handleOf } from './node-internals.js';

/** Descriptors below the limit at which the warning comes. */
const SPARE = 4;

/** Pause between two warnings. */
const QUIET_MS = 60_000;

/** Returns a function to call with each new connection. `maxFiles`: null if the limit is not known. */
export function warnOfOpenFiles(
  warn: (text: string) => void,
  maxFiles = maxOpenFiles(),
): (socket: Socket) => void {
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
