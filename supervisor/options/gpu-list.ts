/** Checks the value of `--gpus`; `machine/placement.ts` finds the GPUs. */
import { NotAllowed } from './units.js';

/** `all`, `none`, `first:2` for at most two, or comma-separated indexes and ids as nvidia-smi prints them. @throws NotAllowed */
export function parseGpus(raw: unknown): string {
  const text = typeof raw === 'number' ? String(raw) : raw;
  if (typeof text !== 'string' || !GPU_LIST.test(text)) throw new NotAllowed(ALLOWED);
  return text;
}

const GPU_LIST =
  /^(all|none|first:[1-9]\d{0,3}|(?:\d+|(?:GPU|MIG)-[\w/-]+)(?:,\s*(?:\d+|(?:GPU|MIG)-[\w/-]+))*)$/;

const ALLOWED = 'all, none, or a comma-separated list such as 0,2 or GPU-5d5ba0d6 or MIG-c7384736';
