/** Reads the use of this machine's CPU, memory and disk. */
import { statfs } from 'node:fs/promises';
import { cpus, freemem, totalmem } from 'node:os';

export interface HostFigures {
  readonly cpuPercent: number;
  readonly memoryUsedBytes: number;
  readonly memoryAvailableBytes: number;
  readonly memoryPercent: number;
  readonly diskUsedBytes: number;
  readonly diskAvailableBytes: number;
  readonly diskPercent: number;
}

interface CpuTimes {
  readonly busyMs: number;
  readonly allMs: number;
}

export class HostReader {
  readonly #folder: string;
  #before: CpuTimes = { busyMs: 0, allMs: 0 };

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** CPU use is measured since the last reading; at first, since the machine was started. */
  async read(): Promise<HostFigures> {
    const disk = await statfs(this.#folder);
    const diskUsedBytes = (disk.blocks - disk.bfree) * disk.bsize;
    const diskAvailableBytes = disk.bavail * disk.bsize;
    const memoryAvailableBytes = freemem();
    const memoryUsedBytes = totalmem() - memoryAvailableBytes;
    return {
      cpuPercent: this.#cpuPercent(),
      memoryUsedBytes,
      memoryAvailableBytes,
      memoryPercent: percent(memoryUsedBytes, totalmem()),
      diskUsedBytes,
      diskAvailableBytes,
      diskPercent: percent(diskUsedBytes, diskUsedBytes + diskAvailableBytes),
    };
  }

  #cpuPercent(): number {
    const before = this.#before;
    const now = cpuTimes();
    this.#before = now;
    return percent(now.busyMs - before.busyMs, now.allMs - before.allMs);
  }
}

function cpuTimes(): CpuTimes {
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
