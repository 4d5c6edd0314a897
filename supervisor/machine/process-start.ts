/** Which process it is that has a number: the system gives numbers again. Known on Linux only. */
import { readFileSync, readlinkSync } from 'node:fs';

/**
 * When it started, in the kernel's ticks since the machine did. Null: there is no such process. Undefined: nobody can tell,
 * since what the kernel says of it cannot be read.
 */
export function startOf(pid: number): string | null | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name, which may hold anything, is in parentheses; the state is the third field, the start the twenty-second.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? null : fields[19];
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    return code === 'ENOENT' || code === 'ESRCH' ? null : undefined;
  }
}

/** The name space in which numbers of processes mean what they mean here, on this machine since it started; `0`: unknown. */
export function processNamespace(): string {
  try {
    const space = /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '';
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').replace(/[^\da-f]/g, '');
    return `${space}x${boot}`;
  } catch {
    return '0';
  }
}
