/**
 * Chooses a device for each slot, from options, discovered GPUs and an inherited mask. `Devices` keeps those that the slots of
 * all models of one server have, so that models share GPUs and cores without knowing each other.
 */
import { configError, type ServeError } from '../../protocol/errors.js';
import { asClause } from '../../protocol/text/sentences.js';
import type { Gpu } from './nvidia-smi.js';

export interface Placement {
  /** On one device, only one worker initialises at a time. */
  readonly device: string;
  /** The GPU as in CUDA_VISIBLE_DEVICES, which the app gets too; null without a GPU. */
  readonly gpu: string | null;
  readonly env: Readonly<Record<string, string>>;
}

/** A model's options about devices. */
export interface DeviceWish {
  readonly workers: number | null;
  readonly gpus: string | null;
  readonly workersPerGpu: number | null;
}

/** Devices and cores of this machine, as this process sees them. */
export interface Machine {
  readonly found: readonly Gpu[];
  /** Result of nvidia-smi as a clause, for messages. */
  readonly result: string;
  /** CUDA_VISIBLE_DEVICES (or ROCm's own) this process was started with; undefined if unset. */
  readonly inheritedMask: string | undefined;
  /** Name of the variable of `inheritedMask`. */
  readonly maskVariable?: string;
  readonly cores: number;
}

export class Devices {
  readonly #machine: Machine;
  /** Placements of all current slots. */
  readonly #taken = new Set<Placement>();
  /** Number of slots beyond the wanted ones, by the slots of a model. */
  readonly #standbys = new Map<object, number>();

  constructor(machine: Machine) {
    this.#machine = machine;
  }

  /** Takes placements for the slots that a model starts with. @throws SERVE_CONFIG if its options do not fit the machine */
  takeFirst(wish: DeviceWish): Placement[] {
    const placements = placeWorkers({ ...this.#machine, ...wish });
    for (const placement of placements) this.#taken.add(placement);
    return placements;
  }

  /** Number of slots that a model would start with. @throws SERVE_CONFIG if its options do not fit the machine */
  firstCount(wish: DeviceWish): number {
    return placeWorkers({ ...this.#machine, ...wish }).length;
  }

  /**
   * Takes placements for `count` more slots: each on the model's GPU with the fewest slots of all models (the first of
   * several), or on the CPU.
   * @throws SERVE_CONFIG as `takeFirst`, except about `workers`: here the caller decides the number; then none is taken
   */
  take(wish: DeviceWish, count: number): Placement[] {
    return Array.from({ length: count }, () => {
      const placement = this.#placeOne(wish);
      this.#taken.add(placement);
      return placement;
    });
  }

  /** As `take` of one, but null if each of the model's GPUs has `workersPerGpu` slots; on the CPU there is always a place. */
  takeIfFree(wish: DeviceWish): Placement | null {
    const placement = this.#placeOne(wish);
    const { device, gpu } = placement;
    if (gpu !== null && this.#slotsOn(device) >= (wish.workersPerGpu ?? 1)) return null;
    this.#taken.add(placement);
    return placement;
  }

  /** Notes how many slots of a model, of which `owner` is the set, have workers that stand by: they share no cores. */
  noteStandbys(owner: object, count: number): void {
    if (count === 0) this.#standbys.delete(owner);
    else this.#standbys.set(owner, count);
  }

  giveBack(placement: Placement): void {
    this.#taken.delete(placement);
  }

  /** Number of slots of all models. */
  get slots(): number {
    return this.#taken.size;
  }

  /** Threads for a worker that starts now: its share of the cores among all slots but those whose workers stand by. */
  get threads(): number {
    const standbys = [...this.#standbys.values()].reduce((sum, count) => sum + count, 0);
    return Math.max(1, Math.floor(this.#machine.cores / Math.max(1, this.#taken.size - standbys)));
  }

  #placeOne(wish: DeviceWish): Placement {
    const slots = chooseGpus({ ...this.#machine, ...wish }).map(gpuSlot);
    if (slots.length === 0) return cpuSlot(wish.gpus);
    return slots.reduce((least, slot) =>
      this.#slotsOn(slot.device) < this.#slotsOn(least.device) ? slot : least,
    );
  }

  #slotsOn(device: string): number {
    return [...this.#taken].filter((placement) => placement.device === device).length;
  }
}

/**
 * Placements for the slots that a model starts with.
 * @throws SERVE_CONFIG if the options ask for missing devices, or contradict the machine
 */
function placeWorkers(input: DeviceWish & Machine): Placement[] {
  const chosen = chooseGpus(input);
  if (input.workers !== null && chosen.length > 0) {
    throw configError(
      `--workers is for machines without GPUs, and this one has ${chosen.length}. Give --workers-per-gpu, or add --gpus none to run on the CPU.`,
    );
  }
  if (chosen.length === 0) {
    if (input.workersPerGpu !== null && input.gpus !== 'none') {
      throw configError(`--workers-per-gpu: no GPU was found (${input.result}). Give --workers instead.`);
    }
    const count = input.workers ?? 1;
    return Array.from({ length: count }, () => cpuSlot(input.gpus));
  }
  const perGpu = input.workersPerGpu ?? 1;
  return chosen.flatMap((id) => Array.from({ length: perGpu }, () => gpuSlot(id)));
}

/** `--gpus none` hides all GPUs. Without --gpus, those that nvidia-smi does not list (other vendors) stay visible. */
function cpuSlot(gpus: string | null): Placement {
  const hidden = { CUDA_VISIBLE_DEVICES: '', HIP_VISIBLE_DEVICES: '' };
  return { device: 'cpu', gpu: null, env: gpus === 'none' ? hidden : {} };
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

/** `first:n`: the first n GPUs, or all if there are fewer. */
const FIRST = /^first:(\d+)$/;

function chooseGpus(input: DeviceWish & Machine): string[] {
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
  // By uuid, because an index and an id may name the same card.
  const chosen = new Map<string, string>();
  for (const wanted of gpus.split(',').map((part) => part.trim())) {
    const { uuid, id } = findGpu(wanted, visible, input);
    if (!chosen.has(uuid)) chosen.set(uuid, id);
  }
  return [...chosen.values()];
}

/**
 * `wanted` is an index among the visible GPUs, as CUDA counts under a mask, or (the start of) an id. The returned `id` is
 * for the worker's mask: an index if an index was given, else an id.
 */
function findGpu(
  wanted: string,
  visible: readonly Gpu[],
  input: DeviceWish & Machine,
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
      throw configError(`--gpus ${wanted}: ${matches.length} ids begin like this; write more of the id.`);
  }
  if (visible.length === 0) throw noGpu(wanted, input);
  const list = visible.map((gpu, i) => `${i} (${gpu.uuid}, ${gpu.name})`).join('; ');
  throw configError(`--gpus ${wanted}: there is no such GPU. Visible here: ${list}${maskHint(input)}.`);
}

/** An inherited mask may name cards of other vendors, which nvidia-smi does not list; then the mask is trusted. */
function unseenGpu(index: number, mask: string | undefined): string | undefined {
  const entry = mask?.split(',')[index]?.trim();
  return entry === '' ? undefined : entry;
}

function noGpu(wanted: string, input: DeviceWish & Machine): ServeError {
  return configError(
    `--gpus ${wanted}: no GPU was found: ${asClause(input.result)}${maskHint(input)}. Use --gpus none to run on the CPU; name cards that nvidia-smi does not list in CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES.`,
  );
}

/**
 * The GPUs that an inherited CUDA_VISIBLE_DEVICES leaves visible, in its order. As with CUDA, the list ends at the first
 * unknown entry.
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

/** The index, as people see it in nvidia-smi; a MIG slice has only its uuid. */
function idOf(gpu: Gpu): string {
  return gpu.index === null ? gpu.uuid : String(gpu.index);
}

function maskHint({ inheritedMask, maskVariable = 'CUDA_VISIBLE_DEVICES' }: DeviceWish & Machine): string {
  return inheritedMask === undefined ? '' : ` (${maskVariable}=${inheritedMask} was inherited)`;
}
