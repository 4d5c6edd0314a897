/** Reads the state of a process from the kernel (proc(5)); on systems without /proc it is unknown. */
import { readFileSync } from 'node:fs';

/** The kernel's `PF_EXITING`, among the flags in `/proc/<pid>/stat`; a thread has it before its files are closed. */
const EXITING = 0x4;

/** Positions among the fields behind the name of the program. */
const STATE = 0;
const FLAGS = 6;

/**
 * Whether the kernel is ending the process, which takes time if the machine is busy or the process has much memory; false
 * if unknown.
 */
export function isEnding(pid: number): boolean {
  try {
    const fields = readStat(pid);
    if (fields === null) return false;
    return 'ZX'.includes(fields[STATE] ?? '') || (Number(fields[FLAGS]) & EXITING) !== 0;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'; // it is gone
  }
}

/** Whether a signal has stopped the process (SIGSTOP), until another one lets it continue; false if unknown. */
export function isFrozen(pid: number): boolean {
  try {
    return readStat(pid)?.[STATE] === 'T';
  } catch {
    return false;
  }
}

/** The fields behind the name of the program, which may contain anything; null on other systems than Linux. */
function readStat(pid: number): string[] | null {
  if (process.platform !== 'linux') return null;
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}
