/**
 * A server that is frozen past its lock, or killed, at each step of a job: fetched, handed over, answered, outcome stored. Another one, a store in this process, does what is left to do. The job begins once unless it is repeatable, and ends
 * once.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test, type TestContext } from 'node:test';
import { hasEnded, type JobRecord } from '../../supervisor/jobs/job-record.js';
import { loadPackages } from '../../supervisor/jobs/redis/load-packages.js';
import { stepScripts } from '../../supervisor/jobs/redis/step-scripts.js';
import { LOCK_MS } from '../../supervisor/jobs/redis/redis-store.js';
import { openFront, type Front } from '../processes/supervisor/jobs/redis/fronts.js';
import { RedisRoad } from '../processes/supervisor/jobs/redis/redis-road.js';
import { RedisServer } from '../processes/worker/api/store/redis-server.js';
import { startAsync } from '../helpers/jobs.js';
import { needs } from '../helpers/needs.js';
import { call, eventually, fixture, startServer, type Server } from '../helpers/server.js';
import { HEAD } from '../supervisor/jobs/stored-jobs.js';

const isMissing = needs('redis-server');
const RUN_MS = 500;
const SOON_MS = 120_000;

interface Step {
  readonly name: string;
  /** The words of the command at which the server is harmed; null: its worker has begun the job. */
  readonly words: readonly string[] | null;
  /** Before: the command comes only after the freeze, and never after a kill. */
  readonly when: 'before' | 'after';
  readonly begins: number;
  /** The end of a job that is not repeatable; `again`: it had not begun, and another server runs it. */
  readonly end: 'again' | 'lost' | 'succeeded';
}

/** Words that only the scripts for a fetch, and for an answer, have. */
const SCRIPTS = stepScripts((await loadPackages()).bull);
const FETCH = [SCRIPTS.begin.sha];
const ANSWER = [SCRIPTS.move.sha, '\r\nend\r\n'];

const STEPS: readonly Step[] = [
  { name: 'about to be fetched', words: FETCH, when: 'before', begins: 0, end: 'again' },
  { name: 'fetched', words: FETCH, when: 'after', begins: 0, end: 'lost' },
  { name: 'handed over', words: null, when: 'after', begins: 1, end: 'lost' },
  { name: 'answered', words: ANSWER, when: 'before', begins: 1, end: 'lost' },
  { name: 'outcome stored', words: ANSWER, when: 'after', begins: 1, end: 'succeeded' },
];

class StepBench {
  readonly #t: TestContext;
  readonly #step: Step;
  readonly #file: string;
  readonly road: RedisRoad;
  readonly server: Server;
  readonly #other: Front;

  private constructor(
    t: TestContext,
    step: Step,
    parts: { file: string; road: RedisRoad; server: Server; other: Front },
  ) {
    this.#t = t;
    this.#step = step;
    this.#file = parts.file;
    this.road = parts.road;
    this.server = parts.server;
    this.#other = parts.other;
  }

  static async open(t: TestContext, step: Step, port: number, database: number): Promise<StepBench> {
    const folder = mkdtempSync(join(tmpdir(), 'banana-steps-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, 'attempts');
    writeFileSync(file, '');
    const road = await RedisRoad.open(t, port);
    const server = await startServer(fixture('attempts.mjs'), {
      t,
      args: ['--workers', '1', '--jobs', `redis://127.0.0.1:${road.port}/${database}`],
      env: { ATTEMPTS: file },
    });
    await server.until(({ state }) => state === 'ready');
    const other = await openFront(port, { database, lockMs: LOCK_MS });
    t.after(() => other.store.close());
    return new StepBench(t, step, { file, road, server, other });
  }

  /** Harms the server at the step of a new job, and returns the id of that. */
  async harm(path: string, signal: 'SIGSTOP' | 'SIGKILL'): Promise<string> {
    const { words, when } = this.#step;
    await this.server.until(({ jobs }) => jobs.problem === null); // a busy machine may have missed a look
    const act = (): void => {
      this.server.process.kill(signal);
      if (when === 'before') this.road.hold('there');
    };
    const harmed = words === null ? null : this.road.ambush(words, when, act);
    const goOn = `${this.#file} ${path.slice(1)} ${signal}`;
    const input = harmed === null ? { until: goOn } : { ms: RUN_MS };
    const id = await startAsync(this.server, path, input, { 'x-banana-job-delay-seconds': '1' });
    if (harmed !== null) await harmed;
    else {
      await eventually(
        () => this.begins(id) > 0,
        SOON_MS,
        () => 'it does not begin',
      );
      act();
      writeFileSync(goOn, '');
    }
    if (signal === 'SIGKILL') {
      await this.server.ended;
      this.road.cut();
    }
    return id;
  }

  /** The server goes on; resolves once it has done what it was about to do. */
  async thaw(): Promise<void> {
    this.server.process.kill('SIGCONT');
    this.road.free();
    const answered = await call(`${this.server.url}/`, '{"ms":0}', { 'content-type': 'application/json' });
    assert.equal(answered.status, 500, 'the handler of the fixture runs jobs only');
    await this.server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
  }

  begins(id: string): number {
    const lines = readFileSync(this.#file, 'utf8').split('\n');
    return lines.filter((line) => line.startsWith(id)).length;
  }

  async record(id: string): Promise<JobRecord> {
    const record = await this.#other.store.get(id);
    assert.ok(record !== null);
    return record;
  }

  async end(id: string): Promise<string> {
    let record = await this.record(id);
    await eventually(
      async () => hasEnded((record = await this.record(id))),
      SOON_MS,
      () => JSON.stringify(record),
    );
    return record.state;
  }

  /** The other server begins the job, and answers it. Returns the attempt that this is. */
  async runElsewhere(id: string): Promise<number> {
    const { model, version, route } = await this.record(id);
    const routes = new Map([[route, 1]]);
    let attempt = 0;
    const look = async (): Promise<boolean> => {
      const target = { model, version, isDefault: true, routes };
      for (const { record } of await this.#other.store.begin(target, `elsewhere ${id}`))
        if (record.id === id) attempt = record.attempts;
      return attempt > 0;
    };
    await eventually(look, SOON_MS, () => `${id} is not to be begun`);
    const outcome = { head: HEAD, bytes: 11, body: Buffer.from('"elsewhere"'), runMs: 1, queueMs: 1 };
    assert.equal((await this.#other.store.settle(id, `elsewhere ${id}`, outcome))?.state, 'succeeded');
    return attempt;
  }

  async result(id: string): Promise<string> {
    return String(await this.#other.store.readResult(id));
  }

  log(text: string): void {
    this.#t.diagnostic(text);
  }
}

describe('a server is frozen or killed when a job is', { concurrency: true, skip: isMissing }, () => {
  let redis: RedisServer;
  before(async () => (redis = await RedisServer.start()));
  after(() => redis.down());

  for (const [database, step] of STEPS.entries())
    test(step.name, { timeout: 600_000 }, async (t) => {
      const bench = await StepBench.open(t, step, redis.port, database);
      for (const signal of ['SIGSTOP', 'SIGKILL'] as const) {
        const id = await bench.harm('/', signal);
        if (step.end === 'again') assert.equal(await bench.runElsewhere(id), 1, signal);
        else assert.equal(await bench.end(id), step.end, signal);
        const before = await bench.record(id);
        if (signal === 'SIGSTOP') await bench.thaw();
        assert.deepEqual(await bench.record(id), before, 'no second outcome');
        assert.equal(bench.begins(id), step.begins, signal);
        if (signal === 'SIGKILL' || step.end !== 'lost') continue;
        const again = await bench.harm('/again', signal);
        assert.equal(await bench.runElsewhere(again), 2);
        await bench.thaw();
        assert.deepEqual([await bench.result(again), bench.begins(again)], ['"elsewhere"', step.begins]);
      }
    });
});
