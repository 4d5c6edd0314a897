/** Reads the memory that workers use, at a pace: soon when something has changed or moves, else about once a second. */
import { readGpuMemory } from '../machine/nvidia-smi.js';
import { readGroupMemory, type GroupMemory } from '../machine/processes.js';
import { CardPool } from './card-pool.js';
import { MEMORY, type Pool } from './facts.js';

export interface BudgetLimits {
  /** Null: no budget. */
  readonly memoryBytes: number | null;
  /** The budget of a card with so many bytes; null: no budget. */
  readonly gpuBytes: ((totalBytes: number) => number) | null;
}

interface ReadingsListener {
  /** The processes to read: leaders of their groups. */
  groups(): readonly number[];
  /** The groups among them that are workers on a device of which this is true. */
  groupsOn(isOn: (device: string) => boolean): readonly number[];
  /** Whether a start is under way or a worker leaves. */
  isHurried(): boolean;
  onRead(): void;
  onProblem(problem: string): void;
}

/** Pauses between readings while something moves, and else. nvidia-smi itself takes 20 to 500 ms. */
const HOST_PACE = [100, 1000] as const;
const GPU_PACE = [250, 5000] as const;

export class Readings {
  cards: readonly CardPool[] = [];
  readonly #limits: BudgetLimits;
  readonly #env: NodeJS.ProcessEnv;
  readonly #listener: ReadingsListener;
  readonly #pacers: readonly Pacer[];
  #groups: ReadonlyMap<number, GroupMemory> = new Map();
  #readAtMs = -Infinity;
  #gpuReadAtMs = -Infinity;
  /** The last one of each source, so that it is told once. */
  readonly #problems = new Map<'host' | 'cards', string>();

  constructor(limits: BudgetLimits, env: NodeJS.ProcessEnv, listener: ReadingsListener) {
    this.#limits = limits;
    this.#env = env;
    this.#listener = listener;
    const isHurried = (): boolean => listener.isHurried();
    this.#pacers = [
      ...(limits.memoryBytes === null ? [] : [new Pacer(() => this.#readHost(), isHurried, ...HOST_PACE)]),
      ...(limits.gpuBytes === null ? [] : [new Pacer(() => this.#readCards(), isHurried, ...GPU_PACE)]),
    ];
  }

  get pools(): readonly Omit<Pool, 'overSinceMs'>[] {
    const { memoryBytes: limitBytes } = this.#limits;
    if (limitBytes === null) return this.cards;
    const usedBytes = [...this.#groups.values()].reduce((sum, { pssBytes }) => sum + pssBytes, 0);
    const host = { name: MEMORY, limitBytes, readAtMs: this.#readAtMs, ownBytes: usedBytes, usedBytes };
    return [host, ...this.cards];
  }

  /** The names of the pools that a worker on this device takes memory from. */
  poolsOf(device: string): string[] {
    const host = this.#limits.memoryBytes === null ? [] : [MEMORY];
    return [...host, ...this.cards.filter((card) => card.isOf(device)).map(({ name }) => name)];
  }

  /** Whether the cards are not known yet, so that a start on one has to wait. */
  get isBlind(): boolean {
    return this.#limits.gpuBytes !== null && this.#gpuReadAtMs === -Infinity;
  }

  /** Memory of the machine that the process holds; null if it was not read yet. */
  memoryOf(id: number): GroupMemory | null {
    return this.#groups.get(id) ?? null;
  }

  /** Memory that the process holds of each pool. */
  bytesOf(id: number): Map<string, number> {
    const bytes = new Map<string, number>();
    const memory = this.memoryOf(id);
    if (memory !== null) bytes.set(MEMORY, memory.pssBytes);
    for (const card of this.cards) if (card.bytesOf(id) > 0) bytes.set(card.name, card.bytesOf(id));
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
    if (this.cards.length === 0) {
      const limitOf = this.#limits.gpuBytes as (totalBytes: number) => number;
      this.cards = cards.map((card) => new CardPool(card, limitOf(card.totalBytes)));
    }
    for (const pool of this.cards) {
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

/** A reading takes at most about this part of the time, unless it is asked for. */
const SHARE = 1 / 10;

/** Repeats a reading, one at a time: at a pace, or soon when that is asked for. */
export class Pacer {
  readonly #read: () => Promise<void>;
  readonly #isHurried: () => boolean;
  readonly #hurriedMs: number;
  readonly #idleMs: number;
  #timer: NodeJS.Timeout | undefined;
  #isSoon = false;
  #isReading = false;
  #isClosed = false;

  /** `hurriedMs`, `idleMs`: the pause while something moves, and else. */
  constructor(read: () => Promise<void>, isHurried: () => boolean, hurriedMs: number, idleMs: number) {
    this.#read = read;
    this.#isHurried = isHurried;
    this.#hurriedMs = hurriedMs;
    this.#idleMs = idleMs;
  }

  /** A reading that begins from now on will follow, as soon as the present one has ended. */
  soon(): void {
    if (!this.#isReading && !this.#isSoon) this.#wait(0);
    this.#isSoon = true;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #wait(pauseMs: number): void {
    clearTimeout(this.#timer);
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.#run(), pauseMs).unref();
  }

  async #run(): Promise<void> {
    this.#isReading = true;
    this.#isSoon = false;
    const beganAtMs = performance.now();
    await this.#read();
    this.#isReading = false;
    const pauseMs = this.#isHurried() ? this.#hurriedMs : this.#idleMs;
    this.#wait(this.#isSoon ? 0 : Math.max(pauseMs, (performance.now() - beganAtMs) / SHARE));
  }
}
