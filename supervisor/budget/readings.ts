/** Reads the memory that workers use, at a pace: soon when something has changed or moves, else about once a second. */
import { readGpuMemory } from '../machine/gpu-usage.js';
import { readGroupMemory, type GroupMemory } from '../machine/process-memory.js';
import { CardPool } from './card-pool.js';
import { MEMORY } from './memory-text.js';
import { Pacer } from './pacer.js';

export interface BudgetLimits {
  /** Null: no budget. */
  readonly memoryBytes: number | null;
  /** The budget of a card with so many bytes; null: no budget. */
  readonly gpuBytes: ((totalBytes: number) => number) | null;
}

export interface ReadingsListener {
  /** The processes to read: leaders of their groups. */
  groups(): readonly number[];
  /** The groups among them that are workers on a device of which this is true. */
  groupsOn(isOn: (device: string) => boolean): readonly number[];
  /** Whether a start is under way or a worker leaves. */
  isHurried(): boolean;
  onRead(): void;
  onProblem(problem: string): void;
}

/** A memory with a budget, as last read. */
export interface ReadPool {
  readonly name: string;
  readonly limitBytes: number;
  readonly readAtMs: number;
  /** Memory that workers and spare processes hold. */
  readonly ownBytes: number;
  /** As `ownBytes`, or more if less is free. */
  readonly usedBytes: number;
}

const HOST_PACE = { hurriedMs: 100, idleMs: 1000 };
/** nvidia-smi itself takes 20 to 500 ms. */
const GPU_PACE = { hurriedMs: 250, idleMs: 5000 };

/** The part of the readings that the books need. */
export type MemoryReadings = Pick<
  Readings,
  'pools' | 'cards' | 'poolsOf' | 'isBlind' | 'memoryOf' | 'bytesOf'
>;

export class Readings {
  readonly #limits: BudgetLimits;
  readonly #env: NodeJS.ProcessEnv;
  readonly #listener: ReadingsListener;
  readonly #pacers: readonly Pacer[];
  #groups: ReadonlyMap<number, GroupMemory> = new Map();
  #readAtMs = -Infinity;
  #cards: readonly CardPool[] = [];
  #gpuReadAtMs = -Infinity;
  /** The last one of each source, so that it is told once. */
  readonly #problems = new Map<'host' | 'cards', string>();

  constructor(limits: BudgetLimits, env: NodeJS.ProcessEnv, listener: ReadingsListener) {
    this.#limits = limits;
    this.#env = env;
    this.#listener = listener;
    const isHurried = (): boolean => listener.isHurried();
    this.#pacers = [
      ...(limits.memoryBytes === null ? [] : [new Pacer(() => this.#readHost(), isHurried, HOST_PACE)]),
      ...(limits.gpuBytes === null ? [] : [new Pacer(() => this.#readCards(), isHurried, GPU_PACE)]),
    ];
  }

  get pools(): ReadPool[] {
    const { memoryBytes } = this.#limits;
    const cards = this.#cards.map(({ name, limitBytes, readAtMs, ownBytes, usedBytes }) => {
      return { name, limitBytes, readAtMs, ownBytes, usedBytes };
    });
    if (memoryBytes === null) return cards;
    const usedBytes = [...this.#groups.values()].reduce((sum, { pssBytes }) => sum + pssBytes, 0);
    const { limitBytes, readAtMs } = { limitBytes: memoryBytes, readAtMs: this.#readAtMs };
    return [{ name: MEMORY, limitBytes, readAtMs, ownBytes: usedBytes, usedBytes }, ...cards];
  }

  get cards(): readonly CardPool[] {
    return this.#cards;
  }

  /** The names of the pools that a worker on this device takes memory from. */
  poolsOf(device: string): string[] {
    const host = this.#limits.memoryBytes === null ? [] : [MEMORY];
    return [...host, ...this.#cards.filter((card) => card.isOf(device)).map(({ name }) => name)];
  }

  /** Whether the cards are not known yet, so that a start on one has to wait. */
  get isBlind(): boolean {
    return this.#limits.gpuBytes !== null && this.#gpuReadAtMs === -Infinity;
  }

  memoryOf(id: number): GroupMemory | null {
    return this.#groups.get(id) ?? null;
  }

  /** Memory that the process holds of each pool. */
  bytesOf(id: number): Map<string, number> {
    const bytes = new Map<string, number>();
    const memory = this.memoryOf(id);
    if (memory !== null) bytes.set(MEMORY, memory.pssBytes);
    for (const card of this.#cards) if (card.bytesOf(id) > 0) bytes.set(card.name, card.bytesOf(id));
    return bytes;
  }

  /** Forgets the memory of processes that have ended: it is free before the next reading. */
  forgetEnded(): void {
    const present = new Set(this.#listener.groups());
    this.#groups = new Map([...this.#groups].filter(([id]) => present.has(id)));
  }

  /** Reads again as soon as possible. */
  look(): void {
    for (const pacer of this.#pacers) pacer.soon();
  }

  close(): void {
    for (const pacer of this.#pacers) pacer.close();
  }

  /** After a problem the figures stay as they are; the next reading comes at the usual pace. */
  async #readHost(): Promise<void> {
    const atMs = performance.now();
    try {
      this.#groups = await readGroupMemory(new Set(this.#listener.groups()));
    } catch (error) {
      this.#tell('host', `the memory of processes cannot be read: ${(error as Error).message}`);
      return;
    }
    this.#tell('host', null);
    this.#readAtMs = atMs;
    this.forgetEnded(); // some may have ended during the reading
    this.#listener.onRead();
  }

  /** After a problem the figures stay as they are: a start must not wait for a driver that does not answer. */
  async #readCards(): Promise<void> {
    const atMs = performance.now();
    const { cards, problem } = await readGpuMemory(this.#env);
    this.#gpuReadAtMs = atMs;
    this.#tell('cards', problem);
    if (this.#cards.length === 0) {
      const limitOf = this.#limits.gpuBytes as (totalBytes: number) => number;
      this.#cards = cards.map((card) => new CardPool(card, limitOf(card.totalBytes)));
    }
    for (const pool of this.#cards) {
      const card = cards.find(({ index }) => pool.name === `gpu ${index}`);
      if (card === undefined) pool.readAtMs = atMs;
      else pool.read(card, atMs, new Set(this.#listener.groupsOn((device) => pool.isOf(device))));
    }
    this.#listener.onRead();
  }

  #tell(source: 'host' | 'cards', problem: string | null): void {
    if (problem !== null && problem !== this.#problems.get(source)) this.#listener.onProblem(problem);
    this.#problems.set(source, problem ?? '');
  }
}
