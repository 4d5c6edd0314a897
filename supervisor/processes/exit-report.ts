/** Describes the exit of a dead worker, for the log. */
import { readFileSync } from 'node:fs';
import type { StuckCause } from '../calls/run-timeout.js';

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** The reason for which the front killed a worker; the first one is kept. */
export type KillCause =
  | StuckCause
  | 'init timeout'
  | 'warm-up timeout'
  | 'its options are wrong'
  | 'over the memory budget'
  | 'protocol error'
  | 'it closed its connection to the server'
  | 'did not stop in time'
  | 'frozen when asked to stop'
  | 'stop';

/** The cause of a worker's end, as metrics count it. */
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
  if (isOurs(exit, cause)) return cause === 'it closed its connection to the server' ? CONNECTION_CLOSED : '';
  if (isHeapFull(stderrTail)) {
    return HEAP_FULL;
  }
  if (exit.signal === 'SIGKILL') {
    return oomKills > 0
      ? OOM_KILLED
      : "the server did not send this SIGKILL: likely the kernel's OOM killer did (see dmesg), or a person";
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
  'the app closed or replaced file descriptor 3; it must not touch descriptors 3 to 5';
const HEAP_FULL = 'the JavaScript heap was full; raise it with NODE_OPTIONS=--max-old-space-size=<MiB>';
const OOM_KILLED =
  "the kernel's OOM killer ended a process of this container; give it more memory or fewer workers";

/** Whether a hint is about too little memory. */
export function isMemoryHint(hint: string): boolean {
  return hint === HEAP_FULL || hint === OOM_KILLED;
}

/** Whether the worker ended because of too little memory: V8's heap was full, or the OOM killer ended it. */
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

/** Whether the front's kill ended the worker: it may have ended by itself just before. */
export function isOurs(exit: Exit, cause: KillCause | null): boolean {
  return cause !== null && exit.signal === 'SIGKILL';
}

/** Reads the number of processes of this cgroup that the OOM killer has ended; null where the kernel does not report it. */
export function readOomKills(): number | null {
  try {
    const events = readFileSync('/sys/fs/cgroup/memory.events', 'utf8');
    const count = /^oom_kill (\d+)$/m.exec(events)?.[1];
    return count === undefined ? null : Number(count);
  } catch {
    return null; // not Linux, cgroup v1, or the root cgroup
  }
}
