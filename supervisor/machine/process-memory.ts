/** Reads the memory use of another process. */
import { readFileSync } from 'node:fs';

/** Resident bytes; 0 on systems without /proc; null if the process is dead, even before its exit is reported. */
export function residentBytes(pid: number): number | null {
  if (process.platform !== 'linux') return 0;
  try {
    const kib = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kib === undefined ? null : Number(kib) * 1024; // a zombie has no VmRSS
  } catch {
    return null;
  }
}
