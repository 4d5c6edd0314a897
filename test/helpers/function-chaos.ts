/**
 * Programs with a function are killed with -9, one after the other, and their workers while they answer calls. Reports what
 * breaks the promises of functions: each call settles once, none runs twice, and no worker outlives its program.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { seeded } from './random.js';
import { ROOT, isAlive } from './server.js';

export interface FunctionChaosOptions {
  readonly hosts: number;
  readonly callsPerHost: number;
  readonly killsPerHost: number;
  readonly seed: number;
  /** Ends the chaos with its reason: that of a test whose time is up. */
  readonly signal?: AbortSignal;
}

export interface FunctionChaosResult {
  /** Number of killed workers. */
  readonly kills: number;
  /** Ends of the calls, by kind. */
  readonly ends: Readonly<Record<string, number>>;
  /** The longest time from the death of a program to that of its last worker. */
  readonly longestOrphanMs: number;
  /** Breaches of promises, each in a line. */
  readonly breaches: readonly string[];
}

type Told =
  | { readonly pids: readonly number[] }
  | { readonly n: number; readonly ended: string; readonly begun?: boolean }
  | { readonly isOver: true };

/** A call that two workers lost before it began is given up. */
const ENDS = ['answered', 'SERVE_WORKER_LOST', 'SERVE_NOT_BEGUN'];
const RUN_MS = 10;
/** Calls that end between two kills: workers must come to answer some. */
const ENDS_BETWEEN_KILLS = 10;
/** Far longer than any call takes, or a worker to die with its program. */
const LIMIT_MS = 120_000;

export async function functionChaos(options: FunctionChaosOptions): Promise<FunctionChaosResult> {
  const folder = mkdtempSync(join(tmpdir(), 'banana-function-chaos-'));
  const chaos = new FunctionChaos(options, join(folder, 'runs'));
  try {
    return await chaos.run();
  } finally {
    chaos.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

class FunctionChaos {
  readonly #options: FunctionChaosOptions;
  readonly #runs: string;
  readonly #random: () => number;
  readonly #breaches: string[] = [];
  readonly #ends: Record<string, number> = {};
  /** For each call that ended: whether it may have begun, null if it was answered. */
  readonly #begun = new Map<number, boolean | null>();
  #host: ChildProcess | null = null;
  #kills = 0;
  #longestOrphanMs = 0;

  constructor(options: FunctionChaosOptions, runs: string) {
    this.#options = options;
    this.#runs = runs;
    this.#random = seeded(options.seed);
  }

  async run(): Promise<FunctionChaosResult> {
    const { hosts, callsPerHost } = this.#options;
    // The calls that never end have numbers of their own.
    for (let i = 0; i < hosts; i += 1) await this.#runHost(i * 2 * callsPerHost);
    this.#judgeRuns();
    return {
      kills: this.#kills,
      ends: this.#ends,
      longestOrphanMs: this.#longestOrphanMs,
      breaches: this.#breaches,
    };
  }

  close(): void {
    this.#host?.kill('SIGKILL');
  }

  async #runHost(from: number): Promise<void> {
    const { callsPerHost, killsPerHost } = this.#options;
    const host = fork(`${ROOT}test/fixtures/functions/calling.mjs`, {
      env: { ...process.env, RUNS: this.#runs },
    });
    this.#host = host;
    const pids = new Set<number>();
    let latest: readonly number[] = [];
    let settled = 0;
    let isOver = false;
    host.on('message', (told: Told) => {
      if ('pids' in told) for (const pid of (latest = told.pids)) pids.add(pid);
      else if ('n' in told) {
        settled += 1;
        this.#noteEnd(told);
      } else isOver = true;
    });
    await this.#until(() => latest.length > 0, host, 'no worker is ready');
    host.send({ from, to: from + callsPerHost, maxMs: RUN_MS });
    for (let kills = 0; kills < killsPerHost; kills += 1) {
      const enough = Math.min(callsPerHost, settled + ENDS_BETWEEN_KILLS * this.#random());
      await this.#until(() => settled >= enough, host, `only ${settled} calls have settled`);
      const alive = latest.filter(isAlive);
      const pid = alive[Math.floor(this.#random() * alive.length)];
      if (pid === undefined) kills -= 1;
      else {
        process.kill(pid, 'SIGKILL');
        this.#kills += 1;
      }
      await delay(this.#random() * RUN_MS);
    }
    await this.#until(() => isOver, host, `calls from ${from} on do not settle`);
    await this.#killHost(host, pids);
  }

  #noteEnd({ n, ended, begun }: Extract<Told, { readonly n: number }>): void {
    this.#ends[ended] = (this.#ends[ended] ?? 0) + 1;
    if (this.#begun.has(n)) this.#breaches.push(`call ${n} settled twice`);
    if (!ENDS.includes(ended)) this.#breaches.push(`call ${n}: ${ended}`);
    this.#begun.set(n, begun ?? null);
  }

  async #killHost(host: ChildProcess, pids: ReadonlySet<number>): Promise<void> {
    await delay(this.#random() * RUN_MS);
    const exited = once(host, 'exit');
    host.kill('SIGKILL');
    await exited;
    const diedAtMs = performance.now();
    const left = (): number[] => [...pids].filter(isAlive);
    while (left().length > 0 && performance.now() - diedAtMs < LIMIT_MS) await delay(1);
    if (left().length > 0) this.#breaches.push(`workers ${left().join(', ')} outlive their program`);
    this.#longestOrphanMs = Math.max(this.#longestOrphanMs, performance.now() - diedAtMs);
  }

  async #until(isTrue: () => boolean, host: ChildProcess, otherwise: string): Promise<void> {
    const limitMs = performance.now() + LIMIT_MS;
    while (!isTrue()) {
      this.#options.signal?.throwIfAborted();
      if (host.exitCode !== null) throw new Error(`the program ended with ${host.exitCode}: ${otherwise}`);
      if (performance.now() > limitMs) throw new Error(otherwise);
      await delay(1);
    }
  }

  #judgeRuns(): void {
    const runs = new Map<number, number>();
    const lines = existsSync(this.#runs) ? readFileSync(this.#runs, 'utf8').split('\n').slice(0, -1) : [];
    for (const line of lines) runs.set(Number(line), (runs.get(Number(line)) ?? 0) + 1);
    for (const [n, count] of runs) if (count > 1) this.#breaches.push(`call ${n} ran ${count} times`);
    for (const [n, begun] of this.#begun) {
      if (begun === null && !runs.has(n)) this.#breaches.push(`call ${n} was answered, and never ran`);
      if (begun === false && runs.has(n)) this.#breaches.push(`call ${n} ran, and is told as not begun`);
    }
  }
}
