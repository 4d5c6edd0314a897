/** Reads the memory of each card by nvidia-smi, and by process where the driver tells that: in containers it does not. */
import { readGroup } from './group-memory.js';
import { readGpuUsage, type GpuUsage } from './gpu-usage.js';
import { runNvidiaSmi } from './nvidia-smi.js';

export interface CardMemory extends Pick<GpuUsage, 'index' | 'uuid'> {
  readonly totalBytes: number;
  /** In use by any process. */
  readonly usedBytes: number;
  /** In use by each process group that the driver tells of. */
  readonly byGroup: ReadonlyMap<number, number>;
}

const LIMIT_MS = 10_000;

const MIB = 1024 ** 2;

const QUESTION = ['--query-compute-apps=gpu_uuid,pid,used_memory', '--format=csv,noheader,nounits'];

/** Cards that are divided into slices are left out: their use is not told. */
export async function readGpuMemory(
  env: NodeJS.ProcessEnv,
  limitMs: number = LIMIT_MS,
): Promise<{ readonly cards: readonly CardMemory[]; readonly problem: string | null }> {
  const [{ gpus, problem }, { text }] = await Promise.all([
    readGpuUsage(env, limitMs),
    runNvidiaSmi(QUESTION, env, limitMs),
  ]);
  const apps = await Promise.all(parseApps(text).map(withGroup));
  const cards = gpus.flatMap(({ index, uuid, totalBytes, usedBytes }) => {
    if (totalBytes === null || usedBytes === null) return [];
    const byGroup = new Map<number, number>();
    for (const { group, bytes } of apps.filter((app) => app.uuid === uuid))
      byGroup.set(group, (byGroup.get(group) ?? 0) + bytes);
    return [{ index, uuid, totalBytes, usedBytes, byGroup }];
  });
  return { cards, problem };
}

interface GpuApp {
  readonly uuid: string;
  readonly pid: number;
  readonly bytes: number;
}

/** Parses a line such as `GPU-…, 1234, 512` (MiB) for each process and card; a use that is not told is left out. */
export function parseApps(text: string): GpuApp[] {
  return text.split('\n').flatMap((line) => {
    const [, uuid = '', pid, mib] = /^(\S+), (\d+), (\d+)$/.exec(line.trim()) ?? [];
    return pid === undefined ? [] : [{ uuid, pid: Number(pid), bytes: Number(mib) * MIB }];
  });
}

async function withGroup(app: GpuApp): Promise<GpuApp & { readonly group: number }> {
  return { ...app, group: (await readGroup(app.pid)) ?? app.pid };
}
