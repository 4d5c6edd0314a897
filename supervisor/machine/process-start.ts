/** Tells whether a process lives, and a reused pid from the old process, by its start time (Linux only). */
import { readFileSync, readlinkSync } from 'node:fs';

/**
 * Start time in the kernel's ticks since boot. Null if there is no such process. Undefined if its entry in /proc cannot be
 * read.
 */
export function startOf(pid: number): string | null | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name is in parentheses and may contain anything; the state is the third field, the start the twenty-second.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? null : fields[19];
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    return code === 'ENOENT' || code === 'ESRCH' ? null : undefined;
  }
}

/** Whether there is a process of this number, of any user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Identifies the pid namespace of this process on this boot of the machine; `0` if unknown. */
export function processNamespace(): string {
  try {
    const space = /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '';
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').replace(/[^\da-f]/g, '');
    return `${space}x${boot}`;
  } catch {
    return '0';
  }
}
