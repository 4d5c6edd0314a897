/** Reads CPU, memory, open files and the existence of another process from Linux. */
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';

/**
 * The CPU time of all threads of a process, in the kernel as well as out of it. The kernel counts it in nanoseconds
 * (`schedstat`); `/proc/PID/stat` rounds the same time to ticks of 10 ms.
 */
export function cpuSecondsOf(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  return threads.reduce((sum, thread) => sum + onCoreNs(`/proc/${pid}/task/${thread}/schedstat`), 0) / 1e9;
}

/** The same with the threads that have ended, in ticks of 10 ms: some servers have a thread for each connection, or end those that rest. */
export function cpuSecondsOfProcess(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** Ticks per second in /proc, the same for every program. */
const TICKS_PER_SECOND = 100;

export function rssMbOf(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1] ?? NaN) / 1024;
}

/** Memory of a process, of shared pages its share; 0 if it has ended. */
export function pssMbOf(pid: number): number {
  try {
    const line = /^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'));
    return Number(line?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}

/** The most memory that a process had since `resetPeakRss`. */
export function peakRssMbOf(pid: number): number {
  const line = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1] ?? NaN) / 1024;
}

export function resetPeakRss(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

export function openFilesOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

function onCoreNs(schedstat: string): number {
  return Number(readFileSync(schedstat, 'utf8').split(' ', 1)[0]);
}
