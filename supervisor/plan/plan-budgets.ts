/** The memory budgets of a server, in bytes. */
import { totalmem } from 'node:os';
import { configError } from '../../protocol/errors.js';
import type { BudgetLimits } from '../budget/readings.js';
import { hasNvidiaSmi } from '../machine/nvidia-smi.js';
import { bytesOf } from '../options/value-forms.js';
import type { ServerOptions } from '../options/resolve.js';

/** Null if there is none. @throws SERVE_CONFIG where memory cannot be measured */
export function planBudgets(
  { memoryBudget, gpuMemoryBudget }: Pick<ServerOptions, 'memoryBudget' | 'gpuMemoryBudget'>,
  platform: NodeJS.Platform = process.platform,
  env: NodeJS.ProcessEnv = process.env,
): BudgetLimits | null {
  if (memoryBudget === null && gpuMemoryBudget === null) return null;
  if (memoryBudget !== null && platform !== 'linux')
    throw configError(
      `--memory-budget: only Linux tells how much memory processes share, and this is ${platform}; leave it out.`,
    );
  if (gpuMemoryBudget !== null && !hasNvidiaSmi(env))
    throw configError(
      '--gpu-memory-budget: nvidia-smi, which tells how much memory a GPU has and uses, was not found; leave it out.',
    );
  return {
    memoryBytes: memoryBudget === null ? null : bytesOf(memoryBudget, memoryHere()),
    gpuBytes: gpuMemoryBudget === null ? null : (totalBytes) => bytesOf(gpuMemoryBudget, totalBytes),
  };
}

/** The limit of the cgroup of this process if it has one, else the memory of the machine. */
function memoryHere(): number {
  const limit = process.constrainedMemory();
  return limit > 0 && limit < totalmem() ? limit : totalmem();
}
