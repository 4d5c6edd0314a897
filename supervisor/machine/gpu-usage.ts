/** Reads the use of each card by nvidia-smi, with a time limit, never during a request. */
import { readGroup } from './process-memory.js';
import { runNvidiaSmi, hasNvidiaSmi } from './nvidia-smi.js';

export interface GpuUsage {
  /** nvidia-smi's index of the card. */
  readonly index: string;
  readonly uuid: string;
  readonly name: string;
  /** Null if unknown, as for a card that is divided into slices. */
  readonly totalBytes: number | null;
  readonly usedBytes: number | null;
  /** From 0 to 1. */
  readonly utilization: number | null;
}

const QUESTION = [
  '--query-gpu=index,uuid,memory.total,memory.used,utilization.gpu,name',
  '--format=csv,noheader,nounits',
];

const LIMIT_MS = 10_000;

const MIB = 1024 ** 2;

export async function readGpuUsage(
  env: NodeJS.ProcessEnv,
  limitMs: number = LIMIT_MS,
): Promise<{ readonly gpus: readonly GpuUsage[]; readonly problem: string | null }> {
  if (!hasNvidiaSmi(env)) return { gpus: [], problem: null };
  const { text, problem } = await runNvidiaSmi(QUESTION, env, limitMs);
  return { gpus: parseUsage(text), problem };
}

/** Parses a line such as `0, GPU-…, 81920, 512, 37, NVIDIA A100` for each card: MiB, and percent. The name may contain commas. */
export function parseUsage(text: string): GpuUsage[] {
  return text.split('\n').flatMap((line) => {
    const [index = '', uuid = '', total = '', used = '', busy = '', ...name] = line.split(', ');
    if (!/^\d+$/.test(index)) return [];
    return [
      {
        index,
        uuid,
        name: name.join(', ').trim(),
        totalBytes: times(total, MIB),
        usedBytes: times(used, MIB),
        utilization: times(busy, 1 / 100),
      },
    ];
  });
}

/** Null for `[N/A]` and the like. */
function times(text: string, factor: number): number | null {
  return /^\d+(?:\.\d+)?$/.test(text) ? Number(text) * factor : null;
}

export interface CardMemory extends Pick<GpuUsage, 'index' | 'uuid'> {
  readonly totalBytes: number;
  /** In use by any process. */
  readonly usedBytes: number;
  /** In use by each process group that the driver tells of. */
  readonly byGroup: ReadonlyMap<number, number>;
}

const APPS_QUESTION = ['--query-compute-apps=gpu_uuid,pid,used_memory', '--format=csv,noheader,nounits'];

/**
 * Reads the memory of each card, and by process where the driver tells that: in containers it does not. Cards that are
 * divided into slices are left out: their use is not told.
 */
export async function readGpuMemory(
  env: NodeJS.ProcessEnv,
  limitMs: number = LIMIT_MS,
): Promise<{ readonly cards: readonly CardMemory[]; readonly problem: string | null }> {
  const [{ gpus, problem }, { text }] = await Promise.all([
    readGpuUsage(env, limitMs),
    runNvidiaSmi(APPS_QUESTION, env, limitMs),
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
