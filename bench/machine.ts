/** The facts without which a number means nothing. */
import { readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';

export function machineFacts(): string {
  const cores = cpus();
  const model = cores[0]?.model.trim() ?? 'unknown CPU';
  const memoryGib = (totalmem() / 2 ** 30).toFixed(0);
  return `Node ${process.versions.node}, ${cores.length} cores of ${model}, ${memoryGib} GiB, ${process.platform}`;
}

/** Tells how much of the machine its host gave to others since the call of this function: noise in the numbers. */
export function watchStolenTime(): () => string {
  const before = cpuTicks();
  return () => {
    const after = cpuTicks();
    const stolen = after.stolen - before.stolen;
    return `${((100 * stolen) / Math.max(1, after.busy - before.busy + stolen)).toFixed(1)}% of the CPU time was stolen by the host`;
  };
}

/** The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. */
function cpuTicks(): { busy: number; stolen: number } {
  const [first = ''] = readFileSync('/proc/stat', 'utf8').split('\n', 1);
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, stolen = 0] = first
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return { busy: user + nice + system + irq + softirq, stolen };
}
