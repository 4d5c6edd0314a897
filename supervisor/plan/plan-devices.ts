/** Plans the use of the machine: its GPUs, the devices of the first workers of each model, and the budgets of memory. */
import { totalmem } from 'node:os';
import { configError } from '../../protocol/errors.js';
import { asClause } from '../../protocol/text/sentences.js';
import type { BudgetLimits } from '../budget/readings.js';
import { availableCores } from '../machine/host-figures.js';
import { Devices } from '../machine/placement.js';
import { discoverGpus, type Discovery, hasNvidiaSmi } from '../machine/nvidia-smi.js';
import type { ModelOptions, ServerOptions } from '../options/resolve.js';
import { bytesOf } from '../options/value-forms.js';
import { boundsFor, ownBounds, type BoundsFacts } from '../models/bounds.js';
import type { FirstModel, ModelPlan } from '../models/model-spec.js';

/** Assigns devices to the first workers of each model. @throws SERVE_CONFIG if a model's options do not fit the machine */
export function placeModels(plans: readonly ModelPlan[], devices: Devices): FirstModel[] {
  return plans.map((plan) => {
    const { options } = plan.spec.resolved;
    const facts = boundsFactsOf(plan, devices);
    const { own } = facts;
    if (own !== null) devices.firstCount(options); // throws if the options do not fit, though no worker may start now
    const { min } = boundsFor('start', facts);
    const isUsual = own === null && plan.firstWorkers === null;
    return { ...plan, own, placements: isUsual ? devices.takeFirst(options) : devices.take(options, min) };
  });
}

/** The facts that decide how many workers a model gets that is not served yet. */
export function boundsFactsOf(
  { spec, bounds, firstWorkers }: Pick<ModelPlan, 'spec' | 'bounds' | 'firstWorkers'>,
  devices: Devices,
): BoundsFacts {
  const { options } = spec.resolved;
  const usualCount = (): number => firstWorkers ?? devices.firstCount(options);
  return { own: ownBounds(options, usualCount), set: bounds, usualCount };
}

/** Finds the devices of the machine; looks for GPUs only if one of `wishes` may use them. */
export async function findDevices(
  wishes: readonly ModelOptions[],
  stop: AbortSignal | undefined,
  cores = availableCores(),
): Promise<{ devices: Devices; problems: readonly string[] }> {
  const needsNoGpu = wishes.every(({ gpus }) => gpus === 'none');
  const { gpus, result, problem } = await (needsNoGpu ? NOT_SEARCHED : discoverGpus(process.env, stop));
  const devices = new Devices({
    found: gpus,
    result,
    ...inheritedMask(process.env),
    cores,
  });
  return {
    devices,
    problems: problem === null ? [] : [`GPU discovery: ${asClause(problem)}; continuing without`],
  };
}

const NOT_SEARCHED: Discovery = { gpus: [], problem: null, result: 'no GPU was looked for' };

/** The environment may restrict this process to some of the GPUs. ROCm reads CUDA's variable too. */
function inheritedMask(env: NodeJS.ProcessEnv): { inheritedMask: string | undefined; maskVariable: string } {
  const set = ['CUDA_VISIBLE_DEVICES', 'HIP_VISIBLE_DEVICES'].find((name) => env[name] !== undefined);
  return { inheritedMask: set === undefined ? undefined : env[set], maskVariable: set ?? '' };
}

/** The budgets of memory, in bytes; null if there is none. @throws SERVE_CONFIG where memory cannot be measured */
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
