/** Ways to start an app: by the command, by the app itself, for a test. The same server each time. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { serve, type ServedFunctions } from '../../index.js';
import { makeCues } from '../helpers/cues.js';
import { holdPort } from '../helpers/held-port.js';
import { post, untilPotassium } from '../helpers/potassium.js';
import { withEachRuntime } from '../helpers/runtimes.js';
import { ROOT, eventually, fixture, isAlive, startServer, type Exit } from '../helpers/server.js';

const LIMIT = { timeout: 60_000 };

test('the command serves an app that is exported as default', LIMIT, async (t) => {
  const server = await startServer(fixture('potassium-default.ts'), { t });
  assert.deepEqual((await post(server, '/greet', { name: 'you' })).json(), { out: 'hello you' });
  assert.equal((await post(server, '/', {})).status, 404);
  await server.stop();
});

test('the command serves an app that is exported as app', LIMIT, async (t) => {
  const server = await startServer(fixture('potassium.mjs'), { t, env: makeCues(t).env });
  assert.equal((await post(server, '/', 5)).json<{ json: number }>().json, 5);
  await server.stop();
});

test(
  'the command serves an app that would start itself, once, with its own options alone',
  LIMIT,
  async (t) => {
    for (const [name, path] of [
      ['potassium-serves.ts', { workerNum: 0, json: { name: 'you' } }],
      ['functions-serve.ts', { out: 'hello you' }],
    ] as const) {
      const server = await startServer(fixture(name), { t, env: { TEST_PORT: '1' } });
      assert.deepEqual((await post(server, '/', { name: 'you' })).json(), path);
      assert.equal((await server.status()).model.workers.length, 1);
      await server.stop();
    }
  },
);

withEachRuntime(({ app }) => {
  test(
    'a legacy app takes any content type, an empty body as null, and is started once, by the command alone',
    LIMIT,
    async (t) => {
      const server = await startServer(app('potassium-legacy'), { t, env: { TEST_PORT: '1' } });
      const send = async (body: string | null): Promise<unknown> =>
        (await fetch(server.url, { method: 'POST', body })).json();
      assert.deepEqual(await send('{"name":"you"}'), { out: 'hello you' });
      assert.deepEqual(await send(null), { out: 'hello nobody' });
      assert.equal((await server.status()).model.workers.length, 1);
      await server.stop();
    },
  );
});

interface Program {
  readonly pid: number;
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly ended: Promise<Exit>;
  kill(signal: NodeJS.Signals): void;
}

/** Runs a file as its author would: `node --import tsx app.ts`. */
function runApp(t: TestContext, path: string, env: Record<string, string>, cwd = ROOT): Program {
  const child = spawn(process.execPath, ['--import', 'tsx', path], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = new Promise<Exit>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
  const kill = (signal: NodeJS.Signals): void => void child.kill(signal);
  return { pid: child.pid as number, stdout: () => stdout, stderr: () => stderr, ended, kill };
}

const PRINTED = {
  'potassium-serves.ts': 'ended with 0\n',
  'potassium-legacy.ts': '',
  'functions-serve.ts': 'shut down\nended with 0\n',
};

async function untilAnswers(url: string, program: Program): Promise<void> {
  const isReady = async (): Promise<boolean> =>
    fetch(`${url}/healthcheck`).then(
      ({ status }) => status === 200,
      () => false,
    );
  await eventually(isReady, 20_000, () => program.stdout() + program.stderr());
}

for (const [name, workers, signal] of [
  ['potassium-serves.ts', 2, 'SIGTERM'],
  ['potassium-legacy.ts', 1, 'SIGINT'],
  ['functions-serve.ts', 1, 'SIGINT'],
] as const) {
  test(`${name}, run directly, is the server: it answers, and ends by ${signal} with 0`, LIMIT, async (t) => {
    const port = await holdPort();
    const program = runApp(t, fixture(name), { TEST_PORT: String(port) });
    const url = `http://127.0.0.1:${port}`;
    await untilAnswers(url, program);
    const status = await untilPotassium({ url }, ({ workers_ready }) => workers_ready === workers);
    assert.deepEqual([status.workers, status.restarts], [workers, 0]);
    const answer = await post({ url }, '/', { name: 'you' });
    assert.equal(answer.status, 200, answer.text);
    const pids = await workerPids(url);
    assert.ok(!pids.includes(program.pid), 'the app runs in workers');
    program.kill(signal);
    assert.deepEqual(await program.ended, { code: 0, signal: null });
    assert.deepEqual(pids.filter(isAlive), []);
    assert.equal(program.stdout(), PRINTED[name], 'the end is told once, by this process');
  });
}

test(
  'an app that starts itself on a port in use says so and ends with the code for that',
  LIMIT,
  async (t) => {
    const taken = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => taken.once('listening', resolve));
    t.after(() => taken.close());
    const { port } = taken.address() as AddressInfo;
    const program = runApp(t, fixture('potassium-serves.ts'), { TEST_PORT: String(port) });
    assert.deepEqual(await program.ended, { code: 4, signal: null });
    assert.match(
      program.stderr(),
      new RegExp(`port ${port} of 127\\.0\\.0\\.1 \\(serve\\(\\{ port \\}\\)\\) is in use`),
    );
  },
);

test('an app that starts itself in a folder with a space in its name is found', LIMIT, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'banana serve '));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(ROOT, join(folder, 'node_modules/banana-serve'));
  symlinkSync(`${ROOT}node_modules/tsx`, join(folder, 'node_modules/tsx'));
  const path = join(folder, 'my app.ts');
  copyFileSync(fixture('potassium-legacy.ts'), path);
  const port = await holdPort();
  const program = runApp(t, path, { TEST_PORT: String(port) }, folder);
  const url = `http://127.0.0.1:${port}`;
  await untilAnswers(url, program);
  assert.deepEqual((await post({ url }, '/', { name: 'you' })).json(), { out: 'hello you' });
  assert.equal((await untilPotassium({ url }, ({ workers_ready }) => workers_ready === 1)).restarts, 0);
  program.kill('SIGTERM');
  assert.equal((await program.ended).code, 0);
});

test('testClient runs init in a worker, and leaves nothing that keeps the process', LIMIT, async (t) => {
  const program = runApp(t, `${ROOT}test/fixtures/potassium-client.mjs`, makeCues(t).env);
  assert.deepEqual(await program.ended, { code: 0, signal: null }, program.stderr());
  assert.equal(program.stderr(), '');
  assert.deepEqual(JSON.parse(program.stdout()), {
    posted: [200, { a: 'é' }, 'yes', 'application/json'],
    inWorker: true,
    raw: { json: 'bytes', bytes: 2 },
    text: ['text', null],
    bytes: [true, 1, 2, 255],
    missing: 404,
    sequence: 5,
    refused: 'refused',
  });
});

test('serve() of functions of which one is none says so', () => {
  const wrong = { inference: 'no function' } as unknown as ServedFunctions;
  return assert.rejects(serve(wrong), {
    name: 'TypeError',
    message: /serve\(\{ inference \}\) needs a function/,
  });
});

async function workerPids(url: string): Promise<number[]> {
  const { model } = (await (await fetch(`${url}/status`)).json()) as {
    model: { workers: { pid: number }[] };
  };
  return model.workers.map(({ pid }) => pid);
}
