/** Asks nvidia-smi for the GPUs of this machine and their use, with a time limit, never during a request. */
import { setTimeout as delay } from 'node:timers/promises';
import { readGroup, findInPath } from './processes.js';

/** The driver may initialise the cards first, which takes seconds on large machines without persistence mode. */
const LIMIT_MS = 10_000;

export interface Gpu {
  /** CUDA's index in PCI bus order; null for a MIG slice. */
  readonly index: number | null;
  /** `GPU-…` or `MIG-…`. */
  readonly uuid: string;
  readonly name: string;
  /** Uuid of the card that contains this MIG slice, else its own uuid. */
  readonly card: string;
}

export interface Discovery {
  readonly gpus: readonly Gpu[];
  /** The reason if GPUs may have been missed; null after success. */
  readonly problem: string | null;
  /** Result of nvidia-smi as a clause, for messages. */
  readonly result: string;
}

/** Lists the GPUs, once, at the start. @throws the reason of `stop` */
export async function discoverGpus(
  env: NodeJS.ProcessEnv,
  stop?: AbortSignal,
  limitMs: number = LIMIT_MS,
): Promise<Discovery> {
  if (!hasNvidiaSmi(env)) return { gpus: [], problem: null, result: 'nvidia-smi was not found' };
  const { text, problem } = await runNvidiaSmi(['-L'], env, limitMs, stop);
  if (problem !== null) return { gpus: [], problem, result: problem };
  const gpus = parseList(text);
  return { gpus, problem: null, result: `nvidia-smi lists ${gpus.length === 0 ? 'none' : gpus.length}` };
}

/** `GPU 0: NVIDIA A100 (UUID: GPU-…)`, and indented below it `MIG 3g.20gb Device 0: (UUID: MIG-…)`. */
export function parseList(text: string): Gpu[] {
  const cards: { gpu: Gpu; slices: Gpu[] }[] = [];
  for (const line of text.split('\n')) {
    const card = /^GPU (\d+): (.*?)\s*\(UUID: ([^)]+)\)/.exec(line);
    if (card !== null) {
      const [, index, name = '', uuid = ''] = card;
      cards.push({ gpu: { index: Number(index), uuid, name, card: uuid }, slices: [] });
      continue;
    }
    const slice = /^\s+(MIG \S+).*\(UUID: ([^)]+)\)/.exec(line);
    const parent = cards.at(-1);
    if (slice === null || parent === undefined) continue;
    const [, profile = '', uuid = ''] = slice;
    parent.slices.push({ index: null, uuid, name: `${parent.gpu.name} ${profile}`, card: parent.gpu.uuid });
  }
  // A card that is divided into slices cannot be used as a whole.
  return cards.flatMap(({ gpu, slices }) => (slices.length > 0 ? slices : [gpu]));
}

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

const MIB = 1024 ** 2;

/** Reads the use of each card. */
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
  const apps = await Promise.all(
    parseApps(text).map(async (app) => ({ ...app, group: (await readGroup(app.pid)) ?? app.pid })),
  );
  const cards = gpus.flatMap(({ index, uuid, totalBytes, usedBytes }) => {
    if (totalBytes === null || usedBytes === null) return [];
    const byGroup = new Map<number, number>();
    for (const { group, bytes } of apps.filter((app) => app.uuid === uuid))
      byGroup.set(group, (byGroup.get(group) ?? 0) + bytes);
    return [{ index, uuid, totalBytes, usedBytes, byGroup }];
  });
  return { cards, problem };
}

/** Parses a line such as `GPU-…, 1234, 512` (MiB) for each process and card; a use that is not told is left out. */
export function parseApps(
  text: string,
): { readonly uuid: string; readonly pid: number; readonly bytes: number }[] {
  return text.split('\n').flatMap((line) => {
    const [, uuid = '', pid, mib] = /^(\S+), (\d+), (\d+)$/.exec(line.trim()) ?? [];
    return pid === undefined ? [] : [{ uuid, pid: Number(pid), bytes: Number(mib) * MIB }];
  });
}

export function hasNvidiaSmi(env: NodeJS.ProcessEnv): boolean {
  return findInPath('nvidia-smi', env) !== null;
}

/**
 * Runs nvidia-smi with a time limit. Its end is never awaited: a process inside a hanging driver does not even die of SIGKILL.
 * `problem`: the reason if there is no usable output. @throws the reason of `stop`
 */
async function runNvidiaSmi(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  limitMs: number,
  stop?: AbortSignal,
): Promise<{ readonly text: string; readonly problem: string | null }> {
  stop?.throwIfAborted();
  const { execa } = await import('execa'); // loaded only if nvidia-smi exists
  const child = execa('nvidia-smi', args, {
    reject: false,
    stdio: ['ignore', 'pipe', 'pipe'],
    env,
    extendEnv: false,
  });
  const late = delay(limitMs, null, { ref: false, ...(stop && { signal: stop }) }).catch(() => null);
  const result = await Promise.race([child, late]);
  if (result === null) {
    child.kill('SIGKILL');
    child.stdout.destroy();
    child.stderr.destroy();
    child.unref();
    stop?.throwIfAborted();
    return { text: '', problem: `nvidia-smi did not answer in ${limitMs} ms` };
  }
  if (!result.failed) return { text: result.stdout, problem: null };
  const message = `${result.stdout}\n${result.stderr}`.trim().split('\n')[0] ?? '';
  return { text: '', problem: `nvidia-smi failed (exit code ${result.exitCode ?? 'none'}): ${message}` };
}
