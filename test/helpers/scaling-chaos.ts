/**
 * A model that scales itself, under waves of calls, while its workers are killed with -9 and frozen, its app is saved again,
 * and its operator changes its bounds. Reports what breaks the promises of calls: each is answered, and none runs twice.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { managementOf } from './managed-command.js';
import type { Management } from './managed-server.js';
import { seeded } from './random.js';
import { call, isAlive, startServer, type Server } from './server.js';

export interface ScalingChaosOptions {
  readonly calls: number;
  readonly seed: number;
  /** Ends the chaos with its reason: that of a test whose time is up. */
  readonly signal?: AbortSignal;
  /** Options of the server beside the bounds. */
  readonly args?: readonly string[];
}

const HARMS = ['kill', 'freeze', 'save', 'scale'] as const;
type Harm = (typeof HARMS)[number];

export interface ScalingChaosResult {
  /** Count of each harm that met a worker. */
  readonly harm: Readonly<Record<Harm, number>>;
  /** Answers by status; refused calls are sent again. */
  readonly answers: Readonly<Record<string, number>>;
  /** Number of processes that answered calls. */
  readonly processes: number;
  /** Breaches of promises, each in a line. */
  readonly breaches: readonly string[];
}

const MAX_WORKERS = 3;
const IDLE_MS = 150;
const RUN_MS = 12;
const CLIENTS = 16;
const WAVE = 160;
/** Between two waves some workers leave, now and then all. */
const PAUSE_MS = 500;
const HARM_PAUSE_MS = 200;
/** So long a harm waits for the calls that end after the one before: on a slow machine no worker would live to its first call. */
const PROGRESS_LIMIT_MS = 10_000;
const FREEZE_MS = 800;
/** Far longer than any harm: a call that takes so long hangs. */
const ANSWER_LIMIT_MS = 60_000;

const APP = `
import { appendFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
export async function inference({ n, ms }) {
  appendFileSync(process.env.RUNS, n + '\\n');
  await delay(ms);
  return { n, pid: process.pid };
}
`;

export async function scalingChaos(options: ScalingChaosOptions): Promise<ScalingChaosResult> {
  const folder = mkdtempSync(join(tmpdir(), 'banana-scaling-chaos-'));
  const chaos = new ScalingChaos(options, folder);
  try {
    return await chaos.run();
  } finally {
    await chaos.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

class ScalingChaos {
  readonly #options: ScalingChaosOptions;
  readonly #app: string;
  readonly #runs: string;
  readonly #random: () => number;
  readonly #breaches: string[] = [];
  readonly #answers: Record<string, number> = {};
  readonly #pids = new Set<number>();
  readonly #harm: Record<Harm, number> = { kill: 0, freeze: 0, save: 0, scale: 0 };
  /** Status of the last answer to each call. */
  readonly #ends: number[] = [];
  #server: Server | null = null;
  #saves = 0;
  #isOver = false;
  #maxWorkers = MAX_WORKERS;

  constructor(options: ScalingChaosOptions, folder: string) {
    this.#options = options;
    this.#random = seeded(options.seed);
    this.#app = join(folder, 'app.mjs');
    this.#runs = join(folder, 'runs');
  }

  async run(): Promise<ScalingChaosResult> {
    this.#save();
    const bounds = [
      '--min-workers',
      '0',
      '--max-workers',
      `${MAX_WORKERS}`,
      '--idle-timeout',
      `${IDLE_MS}ms`,
    ];
    const server = await startServer(this.#app, {
      args: ['--name', 'm', '--watch', '--management-port', '0', ...bounds, ...(this.#options.args ?? [])],
      env: { RUNS: this.#runs },
    });
    this.#server = server;
    const management = await managementOf(server);
    const harm = this.#harmUntilOver(server, management);
    await this.#load(server.url).finally(() => (this.#isOver = true));
    await harm;
    await this.#judgeEnd(server, management);
    this.#judgeRuns();
    const processes = this.#pids.size;
    return { harm: this.#harm, answers: this.#answers, processes, breaches: this.#breaches };
  }

  async close(): Promise<void> {
    this.#server?.process.kill('SIGKILL');
    await this.#server?.ended;
  }

  async #load(url: string): Promise<void> {
    let next = 0;
    while (next < this.#options.calls) {
      const end = Math.min(this.#options.calls, next + WAVE);
      const client = async (): Promise<void> => {
        while (next < end) await this.#callUntilAnswered(url, next++);
      };
      await Promise.all(Array.from({ length: CLIENTS }, client));
      await delay(this.#random() * PAUSE_MS);
    }
  }

  /** A refused call has not begun, and is sent again. */
  async #callUntilAnswered(url: string, n: number): Promise<void> {
    const body = JSON.stringify({ n, ms: this.#random() * RUN_MS });
    for (;;) {
      this.#options.signal?.throwIfAborted();
      const status = await this.#callOnce(url, n, body);
      this.#answers[status] = (this.#answers[status] ?? 0) + 1;
      this.#ends[n] = status;
      if (status !== 503) return;
      await delay(50);
    }
  }

  /** The status; 0 without an answer. */
  async #callOnce(url: string, n: number, body: string): Promise<number> {
    const signal = AbortSignal.timeout(ANSWER_LIMIT_MS);
    try {
      const answer = await call(url, body, undefined, { signal });
      if (answer.status === 200) this.#pids.add(answer.json<{ pid: number }>().pid);
      if (![200, 500, 503].includes(answer.status))
        this.#breaches.push(`call ${n}: ${answer.status} ${answer.text}`);
      return answer.status;
    } catch (thrown) {
      this.#breaches.push(`call ${n} has no answer: ${String(thrown)}`);
      return 0;
    }
  }

  async #harmUntilOver(server: Server, management: Management): Promise<void> {
    while (!this.#isOver) {
      const begunCalls = this.#begunCalls;
      await delay(this.#random() * HARM_PAUSE_MS);
      const limit = Date.now() + PROGRESS_LIMIT_MS;
      const isStill = (): boolean => this.#maxWorkers > 0 && this.#begunCalls === begunCalls;
      while (!this.#isOver && isStill() && Date.now() < limit) await delay(20);
      const harm = HARMS[Math.floor(this.#random() * HARMS.length)] as Harm;
      if (await this.#do(harm, server, management)) this.#harm[harm] += 1;
    }
  }

  /** The calls that a worker has answered or lost. */
  get #begunCalls(): number {
    return (this.#answers[200] ?? 0) + (this.#answers[500] ?? 0);
  }

  /** False if there was no worker for it. */
  async #do(harm: Harm, server: Server, management: Management): Promise<boolean> {
    if (harm === 'save') this.#save();
    else if (harm === 'scale') await this.#scale(management);
    else {
      const { workers } = (await server.status()).model;
      const pid = workers[Math.floor(this.#random() * workers.length)]?.pid ?? null;
      if (pid === null) return false;
      if (harm === 'kill') signalTo(pid, 'SIGKILL');
      else {
        signalTo(pid, 'SIGSTOP');
        await delay(this.#random() * FREEZE_MS);
        signalTo(pid, 'SIGCONT');
      }
    }
    return true;
  }

  /** Each text differs from the one before. */
  #save(): void {
    writeFileSync(this.#app, `${APP}// ${(this.#saves += 1)}\n`);
  }

  async #scale(management: Management): Promise<void> {
    const max = Math.floor(this.#random() * (MAX_WORKERS + 1));
    const min = Math.floor(this.#random() * (max + 1));
    this.#maxWorkers = max;
    await management.manage(`PUT /models/m?min_worker=${min}&max_worker=${max}`);
  }

  /**
   * With its own bounds again, the model comes to rest at zero, and leaves no process. It is saved once more: harms that met
   * every worker before its first call have made it unhealthy until then.
   */
  async #judgeEnd(server: Server, management: Management): Promise<void> {
    await management.manage('PUT /models/m?min_worker=0&max_worker=3');
    this.#save();
    const isIdle = ({ model }: Awaited<ReturnType<Server['status']>>): boolean =>
      model.state === 'idle' && model.workers.length === 0;
    await server.until(isIdle, 60_000).catch((thrown: Error) => this.#breaches.push(thrown.message));
    const left = [...this.#pids].filter(isAlive);
    if (left.length > 0) this.#breaches.push(`processes ${left.join(', ')} are left at zero`);
    assert.ok(this.#pids.size > 0, 'no call was answered');
  }

  #judgeRuns(): void {
    const runs = new Map<number, number>();
    const lines = existsSync(this.#runs) ? readFileSync(this.#runs, 'utf8').split('\n').slice(0, -1) : [];
    for (const line of lines) runs.set(Number(line), (runs.get(Number(line)) ?? 0) + 1);
    for (let n = 0; n < this.#options.calls; n += 1) {
      const count = runs.get(n) ?? 0;
      if (count > 1) this.#breaches.push(`call ${n} ran ${count} times`);
      if (this.#ends[n] === 200 && count === 0) this.#breaches.push(`call ${n} was answered, and never ran`);
    }
  }
}

/** To a process that may have ended meanwhile. */
function signalTo(pid: number, signal: NodeJS.Signals): void {
  if (isAlive(pid)) process.kill(pid, signal);
}
