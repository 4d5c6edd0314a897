/** Which GPUs this machine has: `nvidia-smi -L`, once, at start, bounded in time, never on a request. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

export interface Gpu {
  /** Number that CUDA gives it in PCI bus order; null for a MIG slice, which has none. */
  readonly index: number | null;
  /** `GPU-…` or `MIG-…`. */
  readonly uuid: string;
  readonly name: string;
  /** The card a MIG slice is part of, else its own uuid. */
  readonly card: string;
}

export interface Discovery {
  readonly gpus: readonly Gpu[];
  /** Reason why GPUs may have been missed; null if all went well. */
  readonly problem: string | null;
  /** Result of nvidia-smi, in words for people. */
  readonly said: string;
}

/** The driver may have to initialise the cards first: seconds on large machines without persistence mode. */
const LIMIT_MS = 10_000;

export async function discoverGpus(env: NodeJS.ProcessEnv, limitMs: number = LIMIT_MS): Promise<Discovery> {
  if (!isOnPath('nvidia-smi', env)) return { gpus: [], problem: null, said: 'nvidia-smi was not found' };
  const { execa } = await import('execa'); // only where there is something to ask
  const child = execa('nvidia-smi', ['-L'], {
    reject: false,
    stdio: ['ignore', 'pipe', 'pipe'],
    env,
    extendEnv: false,
  });
  const late = delay(limitMs, null, { ref: false });
  const result = await Promise.race([child, late]);
  if (result === null) {
    // Not waited for: inside a driver that hangs, a process does not even die of SIGKILL.
    child.kill('SIGKILL');
    child.stdout.destroy();
    child.stderr.destroy();
    child.unref();
    return failed(`nvidia-smi did not answer in ${limitMs} ms`);
  }
  if (result.failed) {
    const said = `${result.stdout}\n${result.stderr}`.trim().split('\n')[0] ?? '';
    return failed(`nvidia-smi failed (exit code ${result.exitCode ?? 'none'}): ${said}`);
  }
  const gpus = parseList(result.stdout);
  return { gpus, problem: null, said: `nvidia-smi lists ${gpus.length === 0 ? 'none' : gpus.length}` };
}

function failed(problem: string): Discovery {
  return { gpus: [], problem, said: problem };
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
  // A card that is cut in slices cannot be used as a whole.
  return cards.flatMap(({ gpu, slices }) => (slices.length > 0 ? slices : [gpu]));
}

function isOnPath(program: string, env: NodeJS.ProcessEnv): boolean {
  return (env['PATH'] ?? '')
    .split(delimiter)
    .some((folder) => folder !== '' && existsSync(join(folder, program)));
}
