/** Reads the use of this machine's CPU, memory and disk, and counts its cores. */
import { statfs } from 'node:fs/promises';
import { cpus, freemem, totalmem, availableParallelism } from 'node:os';
import { readFileSync } from 'node:fs';

export type HostFigures = Awaited<ReturnType<ReturnType<typeof hostReader>>>;

/**
 * Returns a function that reads the figures, of the disk of `folder`. CPU use is measured since the last reading; at first,
 * since the machine was started.
 */
export function hostReader(folder: string) {
  let before = { busyMs: 0, allMs: 0 };
  return async () => {
    const disk = await statfs(folder);
    const diskUsedBytes = (disk.blocks - disk.bfree) * disk.bsize;
    const diskAvailableBytes = disk.bavail * disk.bsize;
    const memoryAvailableBytes = freemem();
    const memoryUsedBytes = totalmem() - memoryAvailableBytes;
    const now = cpuTimes();
    const cpuPercent = percent(now.busyMs - before.busyMs, now.allMs - before.allMs);
    before = now;
    return {
      cpuPercent,
      memoryUsedBytes,
      memoryAvailableBytes,
      memoryPercent: percent(memoryUsedBytes, totalmem()),
      diskUsedBytes,
      diskAvailableBytes,
      diskPercent: percent(diskUsedBytes, diskUsedBytes + diskAvailableBytes),
    };
  };
}

function cpuTimes(): { busyMs: number; allMs: number } {
  let [busyMs, allMs] = [0, 0];
  for (const { times } of cpus()) {
    const all = Object.values(times).reduce((sum, ms) => sum + ms, 0);
    allMs += all;
    busyMs += all - times.idle;
  }
  return { busyMs, allMs };
}

function percent(part: number, whole: number): number {
  return whole <= 0 ? 0 : (100 * part) / whole;
}

/** Number of whole cores that this process may use, by affinity and, on Linux, the container's CPU quota; at least 1. */
export function availableCores(): number {
  return Math.max(1, Math.min(availableParallelism(), cgroupQuota() ?? Infinity));
}

/** cgroup v2: `max 100000` or `150000 100000`. Older Node versions ignore it. */
function cgroupQuota(): number | null {
  let text: string;
  try {
    text = readFileSync('/sys/fs/cgroup/cpu.max', 'utf8');
  } catch {
    return null; // not Linux, or cgroup v1
  }
  const [quota, period] = text.trim().split(' ').map(Number);
  if (quota === undefined || period === undefined || !Number.isFinite(quota / period)) return null;
  return Math.max(1, Math.floor(quota / period));
}
