/** Tells whether the kernel is ending a process, which takes time if the machine is busy or the process has much memory. */
import { readFileSync } from 'node:fs';

/** The kernel's `PF_EXITING`, among the flags in `/proc/<pid>/stat`; a thread has it before its files are closed. */
const EXITING = 0x4;

/** Positions among the fields behind the name of the program (proc(5)). */
const STATE = 0;
const FLAGS = 6;

/** Whether the kernel is ending the process; false on systems other than Linux. */
export function isEnding(pid: number): boolean {
  if (process.platform !== 'linux') return false;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return 'ZX'.includes(fields[STATE] ?? '') || (Number(fields[FLAGS]) & EXITING) !== 0;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'; // it is gone
  }
}
