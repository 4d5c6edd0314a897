/** Finds the GPUs of the machine and assigns devices to the first workers of each model. */
import { asClause } from '../../protocol/text/sentences.js';
import { availableCores } from '../machine/cores.js';
import { Devices } from '../machine/devices.js';
import { discoverGpus, type Discovery } from '../machine/gpu-discovery.js';
import type { ModelOptions } from '../options/resolve.js';
import { ownBounds } from '../models/own-scaling.js';
import type { FirstModel, ModelPlan } from '../models/model-plan.js';

/** Assigns devices to the first workers of each model. @throws SERVE_CONFIG if a model's options do not fit the machine */
export function placeModels(plans: readonly ModelPlan[], devices: Devices): FirstModel[] {
  return plans.map((plan) => {
    const { spec, firstWorkers } = plan;
    const { options } = spec.resolved;
    const own = ownBounds(options, () => firstWorkers ?? devices.firstCount(options));
    if (own !== null) {
      devices.firstCount(options); // throws if the options do not fit, though no worker may start now
      return { ...plan, own, placements: devices.take(options, own.min) };
    }
    const placements =
      firstWorkers === null ? devices.takeFirst(options) : devices.take(options, firstWorkers);
    return { ...plan, own, placements };
  });
}

/** Finds the devices of the machine; looks for GPUs only if one of `wishes` may use them. */
export async function findDevices(
  wishes: readonly ModelOptions[],
  stop: AbortSignal | undefined,
): Promise<{ devices: Devices; problems: readonly string[] }> {
  const needsNoGpu = wishes.every(({ gpus }) => gpus === 'none');
  const { gpus, result, problem } = await (needsNoGpu ? NOT_SEARCHED : discoverGpus(process.env, stop));
  const devices = new Devices({
    found: gpus,
    result,
    ...inheritedMask(process.env),
    cores: availableCores(),
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
