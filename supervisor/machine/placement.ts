/** Which device a slot gets: options, discovery and an inherited mask in, one entry per worker out. Pure. */
import { configError, type ServeError } from '../../protocol/errors.js';
import { asClause } from '../../protocol/text/sentences.js';
import type { Gpu } from './gpu-discovery.js';

export interface Placement {
  /** Slots with the same device share its one-init-at-a-time rule. */
  readonly device: string;
  /** The GPU as the app is told it, and as CUDA_VISIBLE_DEVICES names it; null without a GPU. */
  readonly gpu: string | null;
  readonly env: Readonly<Record<string, string>>;
}

/** What a model's options say about devices. */
export interface DeviceWish {
  readonly workers: number | null;
  readonly gpus: string | null;
  readonly workersPerGpu: number | null;
}

/** What this process has to share out. */
export interface Machine {
  readonly found: readonly Gpu[];
  /** Result of nvidia-smi, in words for people. */
  readonly said: string;
  /** CUDA_VISIBLE_DEVICES (or ROCm's own) this process was started with; undefined if unset. */
  readonly inheritedMask: string | undefined;
  /** Which variable that was. */
  readonly maskVariable?: string;
  readonly cores: number;
}

export type PlacementInput = DeviceWish & Machine;

/**
 * The slots that a model starts with.
 * @throws SERVE_CONFIG if the options ask for devices that are not there, or contradict the machine
 */
export function placeWorkers(input: PlacementInput): Placement[] {
  const chosen = chooseGpus(input);
  if (input.workers !== null && chosen.length > 0) {
    throw configError(
      `--workers is for machines without GPUs, and this one has ${chosen.length}. Give --workers-per-gpu, or add --gpus none to run on the CPU.`,
    );
  }
  if (chosen.length === 0) {
    if (input.workersPerGpu !== null && input.gpus !== 'none') {
      throw configError(`--workers-per-gpu: no GPU was found here (${input.said}). Give --workers instead.`);
    }
    const count = input.workers ?? 1;
    return Array.from({ length: count }, () => cpuSlot(input));
  }
  const perGpu = input.workersPerGpu ?? 1;
  return chosen.flatMap((id) => Array.from({ length: perGpu }, () => gpuSlot(id)));
}

/**
 * One slot more: on that of the model's GPUs where the fewest slots are, on the first of several; else on the CPU.
 * `taken`: the number of slots that a device has, those of all models counted.
 * @throws SERVE_CONFIG as `placeWorkers` does, but for `workers`: the number of slots is the caller's business here
 */
export function placeOne(input: PlacementInput, taken: (device: string) => number): Placement {
  const slots = chooseGpus(input).map(gpuSlot);
  if (slots.length === 0) return cpuSlot(input);
  return slots.reduce((least, slot) => (taken(slot.device) < taken(least.device) ? slot : least));
}

/** How many threads a worker should use when the cores are shared by so many. */
export function threadShare(cores: number, workers: number): number {
  return Math.max(1, Math.floor(cores / workers));
}

/** Without --gpus, nothing hides a device that nvidia-smi does not list (other vendors); `none` does. */
function cpuSlot(input: PlacementInput): Placement {
  const hidden = { CUDA_VISIBLE_DEVICES: '', HIP_VISIBLE_DEVICES: '' };
  const env = input.gpus === 'none' ? hidden : {};
  return { device: 'cpu', gpu: null, env };
}

function gpuSlot(id: string): Placement {
  return {
    device: `gpu ${id}`,
    gpu: id,
    // PCI bus order makes CUDA count as nvidia-smi does; its own default is fastest first. ROCm's HIP layer reads
    // HIP_VISIBLE_DEVICES; an inherited ROCR_VISIBLE_DEVICES filters below it, so it stays as it is.
    env: { CUDA_VISIBLE_DEVICES: id, HIP_VISIBLE_DEVICES: id, CUDA_DEVICE_ORDER: 'PCI_BUS_ID' },
  };
}

/** The first so many, or as many as there are. */
const FIRST = /^first:(\d+)$/;

function chooseGpus(input: PlacementInput): string[] {
  const { gpus } = input;
  if (gpus === 'none') return [];
  const visible = visibleGpus(input.found, input.inheritedMask);
  if (gpus === null) return visible.map(idOf);
  const [, most] = FIRST.exec(gpus) ?? [];
  if (most !== undefined) return visible.slice(0, Number(most)).map(idOf);
  if (gpus === 'all') {
    if (visible.length > 0) return visible.map(idOf);
    throw noGpu('all', input);
  }
  // By uuid: an index and an id may name the same card, which counts once.
  const chosen = new Map<string, string>();
  for (const wanted of gpus.split(',').map((part) => part.trim())) {
    const { uuid, id } = findGpu(wanted, visible, input);
    if (!chosen.has(uuid)) chosen.set(uuid, id);
  }
  return [...chosen.values()];
}

/**
 * `wanted` is an index among the visible ones, as CUDA counts under a mask, or (the start of) an id. `id` is what
 * the worker's own mask holds: an index if one was given, an id if one was given.
 */
function findGpu(
  wanted: string,
  visible: readonly Gpu[],
  input: PlacementInput,
): { uuid: string; id: string } {
  if (/^\d+$/.test(wanted)) {
    const gpu = visible[Number(wanted)];
    if (gpu !== undefined) return { uuid: gpu.uuid, id: idOf(gpu) };
    const unseen = input.found.length === 0 ? unseenGpu(Number(wanted), input.inheritedMask) : undefined;
    if (unseen !== undefined) return { uuid: unseen, id: unseen };
  } else {
    const matches = visible.filter((gpu) => gpu.uuid.startsWith(wanted));
    const [gpu] = matches;
    if (gpu !== undefined && matches.length === 1) return { uuid: gpu.uuid, id: gpu.uuid };
    if (matches.length > 1)
      throw configError(`--gpus ${wanted}: this is the start of ${matches.length} ids; write more of it.`);
  }
  if (visible.length === 0) throw noGpu(wanted, input);
  const list = visible.map((gpu, i) => `${i} (${gpu.uuid}, ${gpu.name})`).join('; ');
  throw configError(`--gpus ${wanted}: there is no such GPU. Visible here: ${list}${maskHint(input)}.`);
}

/** An inherited mask may name cards that nvidia-smi does not know, of another maker; then it is taken at its word. */
function unseenGpu(index: number, mask: string | undefined): string | undefined {
  const entry = mask?.split(',')[index]?.trim();
  return entry === '' ? undefined : entry;
}

function noGpu(wanted: string, input: PlacementInput): ServeError {
  return configError(
    `--gpus ${wanted}: no GPU was found here: ${asClause(input.said)}${maskHint(input)}. Use --gpus none to run on the CPU; cards that nvidia-smi does not know are named in CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES.`,
  );
}

/**
 * The GPUs that an inherited CUDA_VISIBLE_DEVICES leaves, in its order. As CUDA does, the list ends at the first entry that
 * names nothing.
 */
function visibleGpus(found: readonly Gpu[], mask: string | undefined): Gpu[] {
  if (mask === undefined) return [...found];
  const visible: Gpu[] = [];
  for (const entry of mask.split(',').map((part) => part.trim())) {
    const gpu = found.find((candidate) =>
      /^\d+$/.test(entry)
        ? candidate.index === Number(entry)
        : entry !== '' && candidate.uuid.startsWith(entry),
    );
    if (gpu === undefined) break;
    if (!visible.includes(gpu)) visible.push(gpu);
  }
  return visible;
}

/** The index if it has one: that is what people see in nvidia-smi; a MIG slice only has its id. */
function idOf(gpu: Gpu): string {
  return gpu.index === null ? gpu.uuid : String(gpu.index);
}

function maskHint({ inheritedMask, maskVariable = 'CUDA_VISIBLE_DEVICES' }: PlacementInput): string {
  return inheritedMask === undefined ? '' : ` (${maskVariable}=${inheritedMask} was inherited)`;
}
