/** Which process it is that has a number: the system gives numbers again. Known on Linux only. */
import { readFileSync, readlinkSync } from 'node:fs';

/** When it started, in the kernel's ticks since the machine did; null if there is no such process, or nobody can tell. */
export function startOf(pid: number): string | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name, which may hold anything, is in parentheses; the state is the third field, the start the twenty-second.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? null : (fields[19] ?? null);
  } catch {
    return null;
  }
}

/** The name space in which numbers of processes mean what they mean here; empty if nobody can tell. */
export function processNamespace(): string {
  try {
    return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '';
  } catch {
    return '';
  }
}
