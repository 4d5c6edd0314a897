/** Counts the cores that this process may use, by affinity and, on Linux, the container's CPU quota. */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** Number of whole cores, at least 1. */
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
