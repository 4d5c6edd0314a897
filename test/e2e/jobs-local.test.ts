/** `--jobs local`: jobs outlive kills and restarts of their server, and their store says when it cannot keep them. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { makeCues, type Cues } from '../helpers/cues.js';
import { callAsync, cancelJob, jobEnd, jobPage, startAsync } from '../helpers/jobs.js';
import { startJob } from '../helpers/potassium.js';
import { startReceiver } from '../helpers/receiver.js';
import { needs } from '../helpers/needs.js';
import { startHere } from '../helpers/here.js';
import { withoutPackage } from '../helpers/without-package.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { CLI, call, eventually, runCommand, startServer, type Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

/** A folder for the jobs of a test, and the servers that use it one after another. */
class JobServers {
  readonly cues: Cues;
  readonly folder: string;
  readonly #t: TestContext;
  readonly #app: string;
  readonly #env: Readonly<Record<string, string>>;

  constructor(t: TestContext, app: string, env: Readonly<Record<string, string>> = {}) {
    this.#t = t;
    this.#app = app;
    this.#env = env;
    this.cues = makeCues(t);
    this.folder = join(scratch(t), 'jobs');
  }

  start(args: readonly string[] = []): Promise<Server> {
    const all = ['--jobs', `local:${this.folder}`, '--drain-lag', '0s', ...args];
    return startServer(this.#app, { t: this.#t, env: { ...this.cues.env, ...this.#env }, args: all });
  }

  /** Starts it in this process: one that no test kills. */
  startHere(): Promise<Server> {
    const args = ['--jobs', `local:${this.folder}`, '--drain-lag', '0s'];
    return startHere(this.#app, { t: this.#t, args, env: { ...this.#env, ...this.cues.env } });
  }
}

function scratch(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'banana-jobs-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function killed(server: Server): Promise<void> {
  server.process.kill('SIGKILL');
  await server.ended;
}

withOneRuntime(({ app }) => {
  test(
    'a kill -9 of the server: queued jobs run after it, those that ran are lost or tried again',
    LIMIT,
    async (t) => {
      const servers = new JobServers(t, app('jobs'));
      const { cues } = servers;
      let server = await servers.start(['--workers', '2']);
      const ended = await startAsync(server, '/', { result: { large: 'x'.repeat(10) } });
      await jobEnd(server, ended);
      const key = { 'idempotency-key': 'mine' };
      const [lost, again] = [
        await startAsync(server, '/', { until: 'never' }, { 'x-request-id': 'lost' }),
        await startAsync(server, '/again', { until: 'go on' }, { 'x-request-id': 'again' }),
      ];
      await cues.untilNoted('begun lost 1');
      await cues.untilNoted('begun again 1');
      const waits = await startAsync(server, '/', { result: 1 }, { 'x-request-id': 'waits', ...key });
      const later = await startAsync(
        server,
        '/',
        {},
        { 'x-request-id': 'later', 'x-banana-job-delay-seconds': '3' },
      );
      await killed(server);
      cues.give('go on');
      server = await servers.start(['--workers', '2']);
      const pages = await Promise.all([ended, lost, again, waits, later].map((id) => jobEnd(server, id)));
      assert.deepEqual(
        pages.map(({ state, attempts }) => [state, attempts]),
        [
          ['succeeded', 1],
          ['lost', 1],
          ['succeeded', 2],
          ['succeeded', 1],
          ['succeeded', 1],
        ],
      );
      assert.deepEqual(pages[0]?.result, { large: 'x'.repeat(10) });
      assert.equal((await fetch(`${server.url}/_k/jobs/${lost}/result`)).status, 500);
      await server.untilPrinted(
        new RegExp(`the background job ${lost} of / failed: The server ended while this job ran`),
      );
      const repeated = await callAsync(server, '/', '{"result":1}', key);
      assert.equal(repeated.headers.get('x-banana-job-id'), waits, 'the key outlives the server');
      assert.equal((await callAsync(server, '/', '{"result":2}', key)).status, 422);
      const begins = (name: string): number =>
        cues.notes().filter((line) => line.startsWith(`begun ${name} `)).length;
      assert.deepEqual(['lost', 'again', 'waits', 'later'].map(begins), [1, 2, 1, 1]);
      await server.stop();
    },
  );

  test('SIGTERM: what runs ends, what waits is kept and runs after the restart', LIMIT, async (t) => {
    const servers = new JobServers(t, app('jobs'));
    const { cues } = servers;
    const first = await servers.start();
    const runs = await startAsync(first, '/', { until: 'go on', deaf: true }, { 'x-request-id': 'runs' });
    await cues.untilNoted('begun runs 1');
    const waits = await startAsync(first, '/', {}, { 'x-request-id': 'waits' });
    const asked = jobPage(first, waits, '?wait=30s');
    first.process.kill('SIGTERM');
    assert.equal((await asked).state, 'queued', 'who waits is told what is known');
    cues.give('go on');
    assert.deepEqual(await first.ended, { code: 0, signal: null });
    assert.doesNotMatch(first.stderr(), /cut off|failed/);
    assert.match(first.stderr(), /draining \(at most 25 s\); waits for 1 call running, 1 worker to stop/);
    assert.deepEqual(
      cues.notes().filter((line) => line.startsWith('begun')),
      ['begun runs 1'],
    );
    const server = await servers.startHere();
    assert.deepEqual(
      [(await jobPage(server, runs)).state, (await jobEnd(server, waits)).state],
      ['succeeded', 'succeeded'],
    );
    await server.stop();
  });

  test(
    'SIGTERM: what runs past the end of the drain is lost, or tried again after the restart',
    LIMIT,
    async (t) => {
      const servers = new JobServers(t, app('jobs'));
      const { cues } = servers;
      const first = await servers.start(['--workers', '2', '--drain-timeout', '3s']);
      const lost = await startAsync(first, '/', { until: 'never', deaf: true }, { 'x-request-id': 'lost' });
      const again = await startAsync(
        first,
        '/again',
        { until: 'go on', deaf: true },
        { 'x-request-id': 'again' },
      );
      await cues.untilNoted('begun lost 1');
      await cues.untilNoted('begun again 1');
      first.process.kill('SIGTERM');
      assert.equal((await first.ended).code, 5);
      const [cut] = /background jobs cut off: .*/.exec(first.stderr()) ?? [];
      assert.ok(cut?.includes(lost) === true && cut.includes(again), first.stderr());
      cues.give('go on');
      const server = await servers.startHere();
      const ends = [await jobEnd(server, lost), await jobEnd(server, again)];
      assert.deepEqual(
        ends.map(({ state, attempts }) => [state, attempts]),
        [
          ['lost', 1],
          ['succeeded', 2],
        ],
      );
      await server.stop();
    },
  );

  test(
    'a second SIGTERM: a job that its worker has not begun waits for the next server',
    LIMIT,
    async (t) => {
      const servers = new JobServers(t, app('jobs'));
      const first = await servers.start();
      await first.untilPrinted(/worker 0 is ready/);
      const { pid } = (await first.status()).model.workers[0] as { pid: number };
      process.kill(pid, 'SIGSTOP');
      const id = await startAsync(first, '/', {});
      await eventually(
        async () => (await jobPage(first, id)).state === 'running',
        60_000,
        () => first.stderr(),
      );
      first.process.kill('SIGTERM');
      await first.untilPrinted(/draining/);
      first.process.kill('SIGTERM');
      assert.equal((await first.ended).code, 143);
      const server = await servers.startHere();
      const { state, attempts } = await jobEnd(server, id);
      assert.deepEqual([state, attempts], ['succeeded', 1]);
      await server.stop();
    },
  );

  test('the folder has no key and no cookie of a client', LIMIT, async (t) => {
    const servers = new JobServers(t, app('jobs'), { BANANA_API_KEY: 'SECRET-KEY' });
    const server = await servers.start();
    const later = { 'x-banana-job-delay-seconds': '1000' };
    const keys = [
      { authorization: 'Bearer SECRET-KEY', cookie: 'SECRET-cookie', 'proxy-authorization': 'SECRET-proxy' },
      { 'x-banana-api-key': 'SECRET-KEY' },
    ];
    for (const headers of keys) await startAsync(server, '/', { body: 'is kept' }, { ...later, ...headers });
    const start = {
      id: '1',
      created: 1,
      apiKey: 'SECRET-KEY',
      modelInputs: { body: 'is kept' },
      startOnly: true,
    };
    const started = await call(`${server.url}/start/v4/`, JSON.stringify(start), later);
    assert.match(started.text, /"message":"success"/);
    await killed(server);
    const files = readdirSync(servers.folder, { withFileTypes: true }).filter((file) => file.isFile());
    const bytes = files.map(({ name }) => readFileSync(join(servers.folder, name), 'latin1')).join('');
    assert.match(bytes, /is kept/);
    assert.doesNotMatch(bytes, /SECRET/);
  });

  test('the webhook of a job that its server lost is sent after the restart', LIMIT, async (t) => {
    const receiver = await startReceiver(t);
    const servers = new JobServers(t, app('result-webhook'), { HOOK: receiver.url });
    const first = await servers.start();
    const { model } = await first.until(({ state }) => state === 'ready');
    process.kill(model.workers[0]?.pid as number, 'SIGSTOP'); // it gets the job, and does not end it
    const id = await startJob(first, '/slow', {});
    await eventually(
      async () => (await jobPage(first, id)).state === 'running',
      60_000,
      () => first.stderr(),
    );
    await killed(first);
    const server = await servers.startHere();
    await receiver.until(1);
    assert.match(String(receiver.arrivals[0]?.body), /SERVE_WORKER_LOST/);
    assert.equal((await jobPage(server, id)).state, 'lost');
    await server.stop();
  });

  test('a start that cannot have its jobs ends with 2, and says what to do', LIMIT, async (t) => {
    const servers = new JobServers(t, app('jobs'));
    const first = await servers.startHere();
    const { folder } = servers;
    const refused = async (args: readonly string[], command?: string): Promise<string> => {
      const { ended, stderr } = runCommand([app('jobs'), '--port', '0', ...args], {
        t,
        ...(command && { command }),
      });
      assert.equal((await ended).code, 2, stderr());
      return stderr().trim();
    };
    const local = ['--jobs', `local:${folder}`];
    assert.equal(
      await refused(local),
      `banana-serve: --jobs: another server uses the store of jobs in ${folder}. End it, or give this one another folder with --jobs local:<folder>.`,
    );
    await jobEnd(first, await startAsync(first, '/', {}));
    await first.stop(); // all is in the one file then
    const file = join(folder, 'jobs.sqlite3');
    truncateSync(file, 5000);
    assert.match(
      await refused(local),
      new RegExp(
        `${file} is damaged \\(.*\\), and was left as it is\\. Restore its folder from a copy, or move it away`,
      ),
    );
    const onFile = await refused(['--jobs', `local:${file}`]);
    assert.match(
      onFile,
      /the store of jobs .* cannot be opened: .*(EEXIST|ENOTDIR).*another folder with --jobs local:<folder>/,
    );
    assert.match(
      await refused(local, withoutPackage(t, '@photostructure')),
      /--jobs local needs the package @photostructure\/sqlite, which cannot be loaded \(ERR_MODULE_NOT_FOUND\)\. Run: npm install @photostructure\/sqlite\.$/,
    );
  });

  // test/processes/supervisor/jobs/local/log-damage.test.ts has every kind of damage.
  test(
    'after a kill, and damage: 2, files as they are, and the command that starts anyway',
    LIMIT,
    async (t) => {
      const servers = new JobServers(t, app('jobs'));
      const first = await servers.start();
      const ids: string[] = [];
      for (let i = 0; i < 6; i += 1)
        ids.push(await startAsync(first, '/', {}, { 'x-banana-job-delay-seconds': '1000' }));
      await killed(first);
      flipBit(join(servers.folder, 'jobs.sqlite3'));
      const files = bytesIn(servers.folder);
      const { ended, stderr } = runCommand(
        [app('jobs'), '--port', '0', '--jobs', `local:${servers.folder}`],
        { t },
      );
      assert.equal((await ended).code, 2, stderr());
      assert.deepEqual(bytesIn(servers.folder), files);
      const [, command = ''] = /cannot be read, after: (mv .*)\.\n$/.exec(stderr()) ?? [];
      assert.notEqual(command, '', stderr());
      execFileSync('sh', ['-c', command]);
      const server = await servers.startHere();
      const kept = await Promise.all(ids.map(async (id) => (await fetch(`${server.url}/_k/jobs/${id}`)).ok));
      const until = kept.indexOf(false);
      assert.deepEqual(
        kept,
        ids.map((_, i) => i < until),
        'those before the damage',
      );
      assert.ok(until >= 1, `${until} jobs`);
      assert.equal((await jobEnd(server, await startAsync(server, '/', {}))).state, 'succeeded');
      await server.stop();
    },
  );

  test(
    'jobs in memory: the first one tells that a restart loses them; workers do not get the value',
    LIMIT,
    async (t) => {
      const folder = scratch(t);
      writeFileSync(
        join(folder, 'app.mjs'),
        'export const init = () => {}; export const inference = () => ({ jobs: process.env.BANANA_JOBS ?? null });',
      );
      const server = await startServer(join(folder, 'app.mjs'), {
        t,
        cwd: folder,
        env: { BANANA_JOBS: 'memory' },
      });
      for (let i = 0; i < 2; i += 1) await jobEnd(server, await startAsync(server, '/', {}));
      assert.equal(
        server.stderr().match(/a restart of this server loses them: --jobs local keeps them/g)?.length,
        1,
      );
      const answer = await call(`${server.url}/`, '{}');
      assert.deepEqual(answer.json(), { jobs: null });
      const { jobs } = (await server.status()) as unknown as { jobs: unknown };
      assert.deepEqual(jobs, { store: 'memory', problem: null });
      assert.deepEqual(readdirSync(folder), ['app.mjs']);
      await server.stop();
    },
  );

  test(
    'a full disk, at the start or later: 503 until there is room, no outcome is lost, other calls go on',
    { ...LIMIT, skip: needs('unshare') },
    async (t) => {
      const cues = makeCues(t);
      const { disk, there, command } = await smallDisk(t, 8);
      fill(join(there, 'filling'));
      const server = await startServer(app('jobs'), {
        t,
        env: cues.env,
        command,
        args: ['--jobs', `local:${disk}/jobs`],
      });
      await server.untilPrinted(
        /cannot be opened: the disk is full\. Mend that, .*\w>\. Until it works again/,
      );
      assert.equal((await call(`${server.url}/`, '{"result":1}')).status, 200);
      assert.equal((await callAsync(server, '/', '{}')).status, 503);
      rmSync(join(there, 'filling'));
      await server.untilPrinted('the store of jobs works again');
      const runs = await startAsync(
        server,
        '/',
        { until: 'go on', large: 100_000 },
        { 'x-request-id': 'runs' },
      );
      await cues.untilNoted('begun runs 1');
      const waits = await startAsync(server, '/', { result: 'waited' });
      fill(join(there, 'filling'));
      let refused = await callAsync(server, '/', '{}');
      await eventually(
        async () =>
          (refused = await callAsync(server, '/', JSON.stringify({ x: 'x'.repeat(20_000) }))).status === 503,
        60_000,
        () => refused.text,
      );
      assert.match(refused.text, /SERVE_NOT_KEPT/);
      assert.notEqual(refused.headers.get('retry-after'), null);
      const large = await callAsync(server, '/', JSON.stringify({ x: 'x'.repeat(3_000_000) }));
      assert.deepEqual([large.status, readdirSync(join(there, 'jobs/bodies'))], [503, []]);
      cues.give('go on');
      await cues.untilNoted('done runs');
      await server.untilPrinted(/jobs works again[^]*the store of jobs fails: .*the disk is full/);
      await eventually(
        async () =>
          (await (await fetch(`${server.url}/readyz`)).text()) === '{"state":"ready","jobs":"unavailable"}',
        60_000,
        () => server.stderr(),
      );
      assert.equal((await call(`${server.url}/`, '{"result":1}')).status, 200);
      rmSync(join(there, 'filling'));
      assert.deepEqual(
        [(await jobEnd(server, runs)).state, (await jobEnd(server, waits)).result],
        ['succeeded', 'waited'],
      );
      await server.untilPrinted(/jobs works again[^]*jobs works again/);
      assert.equal(await (await fetch(`${server.url}/readyz`)).text(), '{"state":"ready"}');
      assert.equal((await jobEnd(server, await startAsync(server, '/', {}))).state, 'succeeded');
      await server.stop();
      const told = server.stderr().match(/the store of jobs (?:fails|works again)/g);
      const [fails, works] = ['the store of jobs fails', 'the store of jobs works again'];
      assert.deepEqual(told, [fails, works, fails, works], 'each once');
    },
  );

  test(
    'a disk that accepted jobs have filled: these begin, end and are cancelled, and a restart has them',
    { ...LIMIT, skip: needs('unshare') },
    async (t) => {
      const cues = makeCues(t);
      const { disk, there, command } = await smallDisk(t, 12);
      const args = ['--jobs', `local:${disk}/jobs`, '--workers', '1', '--queue-timeout', '1h'];
      const start = (): Promise<Server> => startServer(app('jobs'), { t, env: cues.env, command, args });
      let server = await start();
      const result = { large: 2_000_000 };
      const runs = await startAsync(
        server,
        '/',
        { until: 'go on', ...result },
        { 'x-request-id': 'runs', 'x-banana-job-priority': '9' },
      );
      await cues.untilNoted('begun runs 1');
      const never = await startAsync(
        server,
        '/',
        { large: 12_000_000 },
        { 'x-request-id': 'never', 'x-banana-job-priority': '8' },
      );
      const fillUp = async (bytes: number): Promise<string[]> => {
        const ids: string[] = [];
        const body = JSON.stringify({ result: 1, x: 'x'.repeat(bytes) });
        for (;;) {
          const answer = await callAsync(server, '/', body);
          if (answer.status === 503) return ids;
          assert.equal(answer.status, 202, answer.text);
          ids.push(answer.headers.get('x-banana-job-id') as string);
        }
      };
      const waits = [...(await fillUp(400_000)), ...(await fillUp(20_000))];
      assert.ok(waits.length > 5, `${waits.length} jobs`);
      await server.untilPrinted(
        /the store of jobs fails: .*the room left that is kept for accepted jobs\. Until/,
      );
      assert.match(await (await fetch(`${server.url}/readyz`)).text(), /"jobs":"unavailable"/);
      const [cancelled, ...others] = waits as [string, ...string[]];
      assert.equal((await cancelJob(server, cancelled)).status, 204);
      server.process.kill('SIGKILL');
      await server.ended;
      server = await start();
      assert.deepEqual(
        [(await jobEnd(server, runs)).state, (await jobPage(server, cancelled)).state],
        ['lost', 'cancelled'],
      );
      const { state, resultDropped } = await jobEnd(server, never);
      assert.deepEqual([state, typeof resultDropped], ['succeeded', 'string']);
      await server.untilPrinted(
        new RegExp(`the result of the job ${never} is dropped: the disk of the store`),
      );
      for (const id of others) assert.equal((await jobEnd(server, id)).state, 'succeeded');
      const large = [await startAsync(server, '/', result), await startAsync(server, '/', result)];
      for (const id of large) assert.equal((await jobEnd(server, id)).state, 'succeeded');
      assert.ok(readdirSync(join(there, 'jobs/bodies')).length <= 2);
      await server.stop();
    },
  );
});

/** Damages the log of commits in its middle. */
function flipBit(file: string): void {
  const log = readFileSync(`${file}-wal`);
  log.writeUInt8(log.readUInt8(log.length >> 1) ^ 1, log.length >> 1);
  writeFileSync(`${file}-wal`, log);
}

function bytesIn(folder: string): readonly (readonly [name: string, base64: string])[] {
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile());
  return files.map(({ name }) => [name, readFileSync(join(folder, name), 'base64')]);
}

/** Writes until the disk is full. */
function fill(path: string): void {
  for (let size = 1 << 20; size >= 1; size >>= 4) {
    try {
      for (;;) writeFileSync(path, Buffer.alloc(size), { flag: 'a' });
    } catch {
      // smaller pieces fill the rest
    }
  }
}

/** A disk of its own, which outlives the servers that `command` starts. `there`: its path from here. */
async function smallDisk(
  t: TestContext,
  mib: number,
): Promise<{ disk: string; there: string; command: string }> {
  const disk = scratch(t);
  const mount = `mount -t tmpfs -o size=${mib}m tmpfs "$0" && echo mounted && exec sleep 600`;
  const holder = spawn('unshare', ['--map-root-user', '--mount', 'sh', '-c', mount, disk], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => holder.kill('SIGKILL'));
  await once(holder.stdout, 'data');
  const command = join(scratch(t), 'on-small-disk');
  const enter = `nsenter --target ${holder.pid} --user --mount --preserve-credentials`;
  writeFileSync(command, `#!/bin/sh\nexec ${enter} ${process.execPath} ${CLI} "$@"\n`);
  chmodSync(command, 0o755);
  return { disk, there: `/proc/${holder.pid}/root${disk}`, command };
}
