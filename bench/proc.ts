/** What Linux tells of another process: CPU, memory, open files, whether it lives. */
import { readFileSync, readdirSync } from 'node:fs';

/**
 * The CPU time of all threads of a process, in the kernel as well as out of it. The kernel counts it in nanoseconds
 * (`schedstat`); `/proc/PID/stat` rounds the same time to ticks of 10 ms.
 */
export function cpuSecondsOf(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  return threads.reduce((sum, thread) => sum + onCoreNs(`/proc/${pid}/task/${thread}/schedstat`), 0) / 1e9;
}

export function rssMbOf(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1] ?? NaN) / 1024;
}

export function openFilesOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

function onCoreNs(schedstat: string): number {
  return Number(readFileSync(schedstat, 'utf8').split(' ', 1)[0]);
}
