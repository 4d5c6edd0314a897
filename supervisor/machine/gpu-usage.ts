/** Reads the use of each card by nvidia-smi, with a time limit, never during a request. */
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
