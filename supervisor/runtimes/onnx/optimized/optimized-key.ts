/** Names an optimized graph by all that it depends on: the model, onnxruntime, and the instructions of the processor. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { dirname, relative } from 'node:path';
import type { FileFacts } from './digests.js';

export interface OptimizedKey {
  /** Digest of the model and of its files of weights. */
  readonly model: string;
  /** Version of onnxruntime-node. */
  readonly onnxruntime: string;
  /** Digest of the instructions that the processor has: prepacked weights are laid out for them. */
  readonly cpu: string;
}

/** `facts`: the model first. */
export function keyOf(facts: readonly FileFacts[], onnxruntime: string): OptimizedKey {
  const [first] = facts;
  const folder = dirname(first?.path ?? '');
  const [model, ...weights] = facts.map(({ path, sha256 }) => `${relative(folder, path)} ${sha256}`);
  // Without the model's own name: a renamed model is the same one.
  const parts = [model?.split(' ').at(-1) ?? '', ...weights.sort()];
  return { model: shortDigest(parts.join('\n')), onnxruntime, cpu: shortDigest(cpuText()) };
}

/** The name of its folder. */
export function folderNameOf({ model, onnxruntime, cpu }: OptimizedKey): string {
  return `${model}-onnxruntime-${onnxruntime}-cpu-${cpu}`;
}

/** Null for a folder of another name. */
export function keyOfFolderName(name: string): OptimizedKey | null {
  const found = /^([0-9a-f]{16})-onnxruntime-(.+)-cpu-([0-9a-f]{16})$/.exec(name);
  if (found === null) return null;
  const [, model = '', onnxruntime = '', cpu = ''] = found;
  return { model, onnxruntime, cpu };
}

function shortDigest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** The flags of the first core; where the system does not list them, its model. */
function cpuText(): string {
  try {
    const text = readFileSync('/proc/cpuinfo', 'utf8');
    const flags = /^(?:flags|Features)\s*:(.*)$/m.exec(text)?.[1] ?? '';
    return flags.trim().split(/\s+/).sort().join(' ');
  } catch {
    return `${process.arch} ${cpus()[0]?.model ?? ''}`;
  }
}
