/** Finds the GPUs of this machine by `nvidia-smi -L`: once, at the start, with a time limit, never during a request. */
import { runNvidiaSmi, hasNvidiaSmi } from './nvidia-smi.js';

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

/** The driver may initialise the cards first, which takes seconds on large machines without persistence mode. */
const LIMIT_MS = 10_000;

/** @throws the reason of `stop` */
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
