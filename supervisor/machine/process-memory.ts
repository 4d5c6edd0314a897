/** How much memory another process takes. */
import { readFileSync } from 'node:fs';

/** Resident bytes; 0 if the process is gone, or where /proc is not there to be read. */
export function residentBytes(pid: number): number {
  try {
    const kib = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kib === undefined ? 0 : Number(kib) * 1024;
  } catch {
    return 0; // it has just ended, or this is not Linux
  }
}
