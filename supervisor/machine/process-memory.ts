/** How much memory another process takes. */
import { readFileSync } from 'node:fs';

/** Resident bytes; 0 where /proc is not there to be read; null if the process is dead, even if nobody was told yet. */
export function residentBytes(pid: number): number | null {
  if (process.platform !== 'linux') return 0;
  try {
    const kib = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kib === undefined ? null : Number(kib) * 1024; // the dead have no memory any more
  } catch {
    return null;
  }
}
