/** Puts a dead worker's exit into words for the person who reads the log. */
import { readFileSync } from 'node:fs';
import type { StuckCause } from '../calls/run-timeout.js';

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** The reason for which the front killed a worker; the first cause wins. */
export type KillCause =
  | StuckCause
  | 'init timeout'
  | 'its options are wrong'
  | 'protocol error'
  | 'it closed its connection'
  | 'did not stop in time'
  | 'stop';

/** What ended a worker, in one of few words, to count by. */
export type DeathCause =
  | KillCause
  | 'out of memory'
  | 'signal'
  | 'start failed'
  | 'said that it is finished'
  | 'exit'
  | 'no process';

/** `exit code 1`, `signal SIGSEGV`, `killed by the server: run timeout`. */
export function describeExit(exit: Exit, cause: KillCause | null): string {
  if (isOurs(exit, cause)) return `killed by the server: ${cause}`;
  if (exit.signal !== null) return `signal ${exit.signal}`;
  return exit.code === null ? 'unknown exit' : `exit code ${exit.code}`;
}

/** A likely reason beyond the bare exit, or an empty string. */
export function exitHint(exit: Exit, cause: KillCause | null, stderrTail: string, oomKills: number): string {
  if (isOurs(exit, cause)) return cause === 'it closed its connection' ? CONNECTION_CLOSED : '';
  if (isHeapFull(stderrTail)) {
    return HEAP_FULL;
  }
  if (exit.signal === 'SIGKILL') {
    return oomKills > 0
      ? OOM_KILLED
      : "nobody here sent SIGKILL: likely the kernel's OOM killer (see dmesg), or a person";
  }
  if (
    exit.signal === 'SIGSEGV' ||
    exit.signal === 'SIGABRT' ||
    exit.signal === 'SIGBUS' ||
    exit.signal === 'SIGILL'
  ) {
    return 'native code crashed; the last lines of stderr may say where';
  }
  return '';
}

const CONNECTION_CLOSED =
  'the app has closed file descriptor 3 or put another file over it: let it leave descriptors 3 to 5 alone';
const HEAP_FULL = 'the JavaScript heap was full; raise it with NODE_OPTIONS=--max-old-space-size=<MiB>';
const OOM_KILLED =
  "the kernel's OOM killer ended a process of this container; give it more memory or fewer workers";

/** Whether a hint says that there was too little memory. */
export function isMemoryHint(hint: string): boolean {
  return hint === HEAP_FULL || hint === OOM_KILLED;
}

/** Whether too little memory ended the worker: V8's heap was full, or the kernel killed it to get memory back. */
export function ranOutOfMemory(
  exit: Exit,
  cause: KillCause | null,
  stderrTail: string,
  oomKills: number,
): boolean {
  if (isOurs(exit, cause)) return false;
  return isHeapFull(stderrTail) || (exit.signal === 'SIGKILL' && oomKills > 0);
}

function isHeapFull(stderrTail: string): boolean {
  return /JavaScript heap out of memory/.test(stderrTail);
}

/** A worker that we were about to kill may have ended by itself just before. */
export function isOurs(exit: Exit, cause: KillCause | null): boolean {
  return cause !== null && exit.signal === 'SIGKILL';
}

/** Processes of this cgroup that the OOM killer has ended so far; null where that cannot be known. */
export function readOomKills(): number | null {
  try {
    const events = readFileSync('/sys/fs/cgroup/memory.events', 'utf8');
    const count = /^oom_kill (\d+)$/m.exec(events)?.[1];
    return count === undefined ? null : Number(count);
  } catch {
    return null; // not Linux, cgroup v1, or the root cgroup
  }
}
