/** Readings of a device: of a GPU by nvidia-smi, of the CPU by the processes that use it. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { cpuSecondsOfProcess, rssMbOf } from '../proc.js';

export interface Device {
  readonly name: string;
  /** As torch calls it. */
  readonly torch: 'cuda' | 'cpu';
  readonly flags: readonly string[];
  /** Flags that give the device so many workers. */
  workers(count: number): string[];
  /** Memory that is taken, in MB. `pids`: the workers. */
  usedMb(pids: readonly number[]): number;
  /** A percentage of the time between two looks that the device was busy, each time it is called. */
  watchUse(pids: readonly number[]): () => number;
}

/** @throws an Error whose message is a sentence for the person who named the device */
export function theDevice(kind: string): Device {
  if (kind === 'cuda') return gpu(nameOfGpu());
  if (kind === 'cpu') return CPU;
  throw new RangeError(`--device is cuda or cpu, not ${kind}.`);
}

function nameOfGpu(): string {
  try {
    return asked('name');
  } catch (thrown) {
    const { code, status, stdout } = thrown as { code?: string; status?: number; stdout?: string };
    const why =
      code === 'ENOENT' ? 'is not on this machine' : `failed (${stdout?.trim() || `exit status ${status}`})`;
    const cure = '--device cpu runs all of it without a GPU';
    throw new Error(`nvidia-smi, which tells of the GPU, ${why}. ${cure}.`, { cause: thrown });
  }
}

/** The first GPU. */
function gpu(name: string): Device {
  return {
    name,
    torch: 'cuda',
    flags: ['--gpus', '0'],
    workers: (count) => ['--workers-per-gpu', String(count)],
    usedMb: () => Number(asked('memory.used')),
    watchUse: () => () => Number(asked('utilization.gpu')),
  };
}

function asked(what: string): string {
  const args = ['-i', '0', `--query-gpu=${what}`, '--format=csv,noheader,nounits'];
  return execFileSync('nvidia-smi', args, { encoding: 'utf8' }).trim();
}

const CPU: Device = {
  name: `${availableParallelism()} cores of ${cpus()[0]?.model ?? 'a CPU'}`,
  torch: 'cpu',
  flags: ['--gpus', 'none'],
  workers: (count) => ['--workers', String(count)],
  usedMb: (pids) => pids.filter(isThere).reduce((sum, pid) => sum + rssMbOf(pid), 0),
  watchUse: (pids) => {
    const cpuS = (): number => pids.reduce((sum, pid) => sum + cpuSecondsOfProcess(pid), 0);
    let before = { cpuS: cpuS(), atMs: performance.now() };
    return () => {
      const now = { cpuS: cpuS(), atMs: performance.now() };
      const share = ((now.cpuS - before.cpuS) / (now.atMs - before.atMs)) * 1000;
      before = now;
      return (100 * share) / availableParallelism();
    };
  },
};

function isThere(pid: number): boolean {
  return existsSync(`/proc/${pid}/exe`);
}
