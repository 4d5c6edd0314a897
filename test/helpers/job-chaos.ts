/**
 * Servers that share a Redis, as many machines do, under load, while workers, servers, Redis and the receiver of webhooks are
 * killed with -9 and servers are frozen past their lock. Reports what breaks the promises of jobs, and of their webhooks.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { RedisServer } from '../processes/worker/api/store/redis-server.js';
import { LOCK_MS } from '../../supervisor/jobs/redis/redis-store.js';
import type { JobPage } from './jobs.js';
import { holdPort } from './held-port.js';
import { seeded } from './random.js';
import { ROOT, eventually, fixture, startServer, type Server } from './server.js';

export interface ChaosOptions {
  readonly jobs: number;
  readonly fronts: number;
  readonly seed: number;
  /** The setting of Redis: `always`, or `everysec`, which loses some. */
  readonly appendfsync: string;
  /** So many of each, one after the other, at random times. */
  readonly harm: Readonly<Record<Harm, number>>;
  readonly log?: (text: string) => void;
}

export type Harm = 'worker' | 'front' | 'redis' | 'freeze' | 'receiver';

export interface ChaosResult {
  readonly states: Readonly<Record<string, number>>;
  /** Jobs that were tried again after they had begun. */
  readonly repeated: number;
  /** Webhooks that came, those of them that came again, and those whose receiver was away at all of their attempts. */
  readonly webhooks: { readonly came: number; readonly again: number; readonly givenUp: number };
  /** Breaches of promises, each in a line. */
  readonly breaches: readonly string[];
}

/** Longer than the lock and the time until a job without one is lost. */
const FREEZE_MS = LOCK_MS + 4000;
const RUN_MS = 120;
const CLIENTS = 12;
const END_LIMIT_MS = 120_000;

/** A look reads all logs, or asks for every job that is open. */
const LOOK_MS = 200;

/** The receiver is back so soon that few webhooks are given up: their attempts spread over 21 s. */
const AWAY_MS = 3000;

/** A front that is dead, then 21 s of attempts. */
const WEBHOOKS_LIMIT_MS = 120_000;

interface Accepted {
  readonly id: string;
  readonly isRepeatable: boolean;
}

export async function jobChaos(options: ChaosOptions): Promise<ChaosResult> {
  const folder = mkdtempSync(join(tmpdir(), 'banana-chaos-'));
  const chaos = new Chaos(options, folder);
  try {
    return await chaos.run();
  } finally {
    await chaos.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

class Chaos {
  readonly #options: ChaosOptions;
  readonly #folder: string;
  readonly #random: () => number;
  readonly #fronts: Server[] = [];
  /** Every server that was started, the killed ones too. */
  readonly #everyFront: Server[] = [];
  readonly #accepted: Accepted[] = [];
  #redis: RedisServer | null = null;
  #receiver: ChildProcess | null = null;
  #receiverPort = 0;
  #isLoaded = false;

  constructor(options: ChaosOptions, folder: string) {
    this.#options = options;
    this.#folder = folder;
    this.#random = seeded(options.seed);
  }

  async run(): Promise<ChaosResult> {
    const { appendfsync, fronts } = this.#options;
    const args = ['--dir', this.#folder, '--appendonly', 'yes', '--appendfsync', appendfsync];
    this.#redis = await RedisServer.start(...args);
    this.#receiverPort = await holdPort();
    await this.#startReceiver();
    await Promise.all(Array.from({ length: fronts }, (_, i) => this.#startFront(i)));
    await Promise.all([this.#load(), this.#harm()]);
    return this.#judge();
  }

  async close(): Promise<void> {
    for (const front of this.#fronts) front.process.kill('SIGKILL');
    await Promise.all(this.#fronts.map(({ ended }) => ended));
    this.#receiver?.kill('SIGKILL');
    await this.#redis?.down();
  }

  get #webhooksFile(): string {
    return join(this.#folder, 'webhooks');
  }

  get #attemptsFile(): string {
    return join(this.#folder, 'attempts');
  }

  async #startFront(index: number): Promise<void> {
    const front = await startServer(fixture('attempts.mjs'), {
      args: ['--workers', '2', '--jobs', `redis://127.0.0.1:${this.#redis?.port}`],
      env: { ATTEMPTS: this.#attemptsFile, HOOK: `http://127.0.0.1:${this.#receiverPort}/` },
    });
    this.#fronts[index] = front;
    this.#everyFront.push(front);
  }

  async #startReceiver(): Promise<void> {
    const args = [
      `${ROOT}test/fixtures/webhook-receiver.mjs`,
      String(this.#receiverPort),
      this.#webhooksFile,
    ];
    const receiver = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(receiver.stdout, 'data');
    this.#receiver = receiver;
  }

  /** Clients that repeat a call until a front has accepted it. */
  async #load(): Promise<void> {
    let next = 0;
    const client = async (): Promise<void> => {
      while (next < this.#options.jobs) await this.#accept(next++);
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
    this.#isLoaded = true;
    this.#options.log?.(`${this.#accepted.length} jobs are accepted`);
  }

  async #accept(number: number): Promise<void> {
    const isRepeatable = number % 2 === 0;
    const body = JSON.stringify({ ms: Math.round(this.#random() * RUN_MS) });
    for (;;) {
      const front = this.#pick(this.#fronts);
      const id = await post(front.url + (isRepeatable ? '/again' : '/'), body, `job ${number}`);
      if (id !== null) {
        this.#accepted.push({ id, isRepeatable });
        return;
      }
      await delay(100);
    }
  }

  async #harm(): Promise<void> {
    const all = Object.entries(this.#options.harm).flatMap(([kind, times]) =>
      Array.from({ length: times }, () => ({ kind: kind as Harm, at: this.#random() })),
    );
    for (const { kind } of all.sort((a, b) => a.at - b.at)) {
      await delay(300 + this.#random() * 700);
      this.#options.log?.(`${kind}${this.#isLoaded ? ', after the load' : ''}`);
      await this.#do(kind);
    }
  }

  async #do(kind: Harm): Promise<void> {
    const index = Math.floor(this.#random() * this.#fronts.length);
    const front = this.#fronts[index] as Server;
    if (kind === 'worker') {
      const { pid } = this.#pick((await front.status()).model.workers);
      if (pid !== null) process.kill(pid, 'SIGKILL');
    } else if (kind === 'front') {
      front.process.kill('SIGKILL');
      await front.ended;
      await this.#startFront(index);
    } else if (kind === 'receiver') {
      this.#receiver?.kill('SIGKILL');
      await delay(this.#random() * AWAY_MS);
      await this.#startReceiver();
    } else if (kind === 'freeze') {
      front.process.kill('SIGSTOP');
      await delay(FREEZE_MS);
      front.process.kill('SIGCONT');
    } else {
      await this.#redis?.down();
      await delay(this.#random() * 1000);
      await this.#redis?.up();
    }
  }

  async #judge(): Promise<ChaosResult> {
    const pages = new Map<string, JobPage>();
    const waiting = new Map(this.#accepted.map((job) => [job.id, job]));
    const lost: string[] = [];
    const look = async (): Promise<boolean> => {
      for (const id of [...waiting.keys()]) {
        const page = await pageOf(this.#fronts[0] as Server, id);
        if (page === 'unknown') lost.push(`${id} was accepted, and is unknown`);
        else if (page === null || page.endedAt === null) continue;
        else pages.set(id, page);
        waiting.delete(id);
      }
      if (waiting.size > 0) await delay(LOOK_MS);
      return waiting.size === 0;
    };
    const ended = await eventually(look, END_LIMIT_MS, () => '').then(
      () => true,
      () => false,
    );
    const unended = ended ? [] : [...waiting.keys()].map((id) => `${id} does not end`);
    const attempts = this.#attempts();
    const breaches = this.#accepted.flatMap((job) =>
      breachesOf(job, pages.get(job.id), attempts.get(job.id) ?? []),
    );
    const states: Record<string, number> = {};
    for (const { state } of pages.values()) states[state] = (states[state] ?? 0) + 1;
    const repeated = [...attempts.values()].filter(({ length }) => length > 1).length;
    const { missing, givenUp } = await this.#missingWebhooks(pages);
    const came = this.#webhooks();
    const ids = new Set(this.#accepted.map(({ id }) => `msg_${id}`));
    const strange = [...new Set(came)].filter((id) => !ids.has(id)).map((id) => `${id} is of no job`);
    const webhooks = { came: came.length, again: came.length - new Set(came).size, givenUp };
    return {
      states,
      repeated,
      webhooks,
      breaches: [...lost, ...unended, ...breaches, ...missing, ...strange],
    };
  }

  /** Each job that succeeded owes the receiver its answer, unless that was away at all attempts. */
  async #missingWebhooks(
    pages: ReadonlyMap<string, JobPage>,
  ): Promise<{ missing: string[]; givenUp: number }> {
    let givenUp = new Set<string>();
    const succeeded = [...pages.values()].filter(({ state }) => state === 'succeeded');
    let missing: string[] = [];
    const look = async (): Promise<boolean> => {
      const came = new Set(this.#webhooks());
      const owed = succeeded.map(({ id }) => id).filter((id) => !came.has(`msg_${id}`));
      givenUp = this.#givenUp();
      missing = owed.filter((id) => !givenUp.has(`msg_${id}`));
      if (missing.length > 0) await delay(LOOK_MS);
      return missing.length === 0;
    };
    await eventually(look, WEBHOOKS_LIMIT_MS, () => '').catch(() => {}); // `missing` says it
    const lines = missing.map((id) => `the webhook of ${id} does not come`);
    return { missing: lines, givenUp: givenUp.size };
  }

  /** Ids of webhooks whose last attempt has failed, by the logs of the servers. */
  #givenUp(): Set<string> {
    const lines = this.#everyFront.flatMap((front) => front.stderr().split('\n'));
    const failed = lines.filter((line) => line.includes('Webhook to ') && line.includes(' failed with '));
    return new Set(failed.map((line) => /"webhookId":"(msg_\w+)"/.exec(line)?.[1] ?? ''));
  }

  #webhooks(): string[] {
    if (!existsSync(this.#webhooksFile)) return [];
    return readFileSync(this.#webhooksFile, 'utf8').split('\n').slice(0, -1);
  }

  /** The attempts that began, by id. */
  #attempts(): Map<string, string[]> {
    const byId = new Map<string, string[]>();
    for (const line of readFileSync(this.#attemptsFile, 'utf8').split('\n')) {
      const [id, attempt] = line.split(' ');
      if (id !== undefined && attempt !== undefined) byId.set(id, [...(byId.get(id) ?? []), attempt]);
    }
    return byId;
  }

  #pick<T>(all: readonly T[]): T {
    return all[Math.floor(this.#random() * all.length)] as T;
  }
}

function breachesOf(
  { id, isRepeatable }: Accepted,
  page: JobPage | undefined,
  attempts: readonly string[],
): string[] {
  const found: string[] = [];
  if (new Set(attempts).size < attempts.length)
    found.push(`${id}: an attempt began twice: ${attempts.join(' ')}`);
  if (!isRepeatable && attempts.length > 1) found.push(`${id} began ${attempts.length} times`);
  if (page === undefined) return found;
  if (isRepeatable && page.state !== 'succeeded') found.push(`${id} is repeatable, and ${page.state}`);
  if (page.state === 'succeeded' && attempts.length === 0) found.push(`${id} succeeded, and never began`);
  return found;
}

/** The id of the job; null if it was not accepted for certain. */
async function post(url: string, body: string, key: string): Promise<string | null> {
  const headers = { 'content-type': 'application/json', prefer: 'respond-async', 'idempotency-key': key };
  try {
    const response = await fetch(url, { method: 'POST', body, headers, signal: AbortSignal.timeout(60_000) });
    await response.arrayBuffer();
    return response.status === 202 ? response.headers.get('x-banana-job-id') : null;
  } catch {
    return null; // the front is dead or frozen
  }
}

/** Null while the front cannot say. */
async function pageOf({ url }: Server, id: string): Promise<JobPage | 'unknown' | null> {
  const response = await fetch(`${url}/_k/jobs/${id}`);
  const page = (await response.json()) as JobPage;
  if (response.status === 404) return 'unknown';
  return response.status === 200 ? page : null;
}
