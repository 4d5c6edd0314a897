/** Ways to start an app: by the command, by the app itself, for a test. The same server each time. */
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, extname, join } from 'node:path';
import { after, describe, test, type TestContext } from 'node:test';
import { serve, type ServedFunctions } from '../../index.js';
import { makeCues } from '../helpers/cues.js';
import { holdPort } from '../helpers/held-port.js';
import { needs } from '../helpers/needs.js';
import { post, untilPotassium } from '../helpers/potassium.js';
import { withEachRuntime, type Language } from '../helpers/runtimes.js';
import { ROOT, eventually, fixture, isAlive, runCommand, type RunningCommand } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };

withEachRuntime((runtime) => {
  const { language, app, potassium } = runtime;

  describe('the command, with apps that would start themselves and others', LIMIT, () => {
    const { folder, path } = folderWithSpace({ after }, app('potassium-legacy'));
    const models = {
      default: app('potassium-default'),
      potassium: potassium(),
      serves: app('potassium-serves'),
      ...(language === 'TypeScript' && { functions: fixture('functions-serve.ts') }),
    };
    const args = Object.entries(models).flatMap(([name, app]) => ['--model', `${name}=${app}`]);
    const shared = shareHere(path, { cwd: folder, args, env: { TEST_PORT: '1' } });

    test('serves an app that does not call itself app', async () => {
      const { server } = shared;
      const answer = await post(server, '/models/default/greet', { name: 'you' });
      assert.deepEqual(answer.json(), { out: 'hello you' });
      assert.equal((await post(server, '/models/default/', {})).status, 404);
    });

    test('serves an app by the name of app', async () => {
      const answer = await post(shared.server, '/models/potassium/', 5);
      assert.equal(answer.json<{ json: number }>().json, 5);
    });

    test('serves an app that would start itself with its own options alone', async () => {
      const answer = await post(shared.server, '/models/serves/', { name: 'you' });
      assert.deepEqual(answer.json(), { workerNum: 0, json: { name: 'you' } });
    });

    test('serves functions that would start themselves', async () => {
      if (language !== 'TypeScript') return; // Python has no serve()
      const answer = await post(shared.server, '/models/functions/', { name: 'you' });
      assert.deepEqual(answer.json(), { out: 'hello you' });
    });

    test('serves a legacy app, in a file and folder with a space, which takes any content type, and no body as null', async () => {
      const { server } = shared;
      const send = async (body: string | null): Promise<unknown> =>
        (await fetch(server.url, { method: 'POST', body })).json();
      assert.deepEqual(await send('{"name":"you"}'), { out: 'hello you' });
      assert.deepEqual(await send(null), { out: 'hello nobody' });
      assert.deepEqual((await post(server, '/', { name: 'you' })).json(), { out: 'hello you' });
    });

    test('starts each of them once', async () => {
      const { models: served } = await shared.server.status();
      assert.deepEqual(
        served.map(({ workers }) => workers.length),
        Array(Object.keys(models).length + 1).fill(1),
      );
      assert.equal(shared.server.stdout(), '', 'no line behind serve has run');
    });
  });

  test('a test client runs init and calls, and leaves nothing that keeps the process', LIMIT, async (t) => {
    const program = CLIENTS[language](t);
    assert.deepEqual(await program.ended, { code: 0, signal: null }, program.stderr());
    assert.equal(program.stderr(), '');
    assert.deepEqual(JSON.parse(program.stdout()), {
      posted: [200, { a: 'é' }, 'yes', 'application/json'],
      // In Python the test shares its locks with the handler, as tests of Potassium have it.
      inWorker: language === 'TypeScript',
      raw: { json: 'bytes', bytes: 2 },
      text: ['text', null],
      bytes: [true, 1, 2, 255],
      missing: 404,
      sequence: 5,
      refused: 'refused',
    });
  });
});

/** Runs a file as its author would: `node --import tsx app.ts`. */
function runNode(t: TestContext, path: string, env: Record<string, string>, cwd = ROOT): RunningCommand {
  return runCommand(['--import', 'tsx', path], { t, command: process.execPath, env, cwd });
}

/** Runs a file as its author would: `python3 app.py`, where `potassium` is ours, and so are the fixtures. */
function runPython(t: TestContext, path: string, env: Record<string, string>): RunningCommand {
  const paths = [`${ROOT}worker/python`, `${ROOT}test/fixtures/python-apps`];
  const all = { PYTHONPATH: paths.join(delimiter), PYTHONWARNINGS: 'ignore', ...env };
  return runCommand(['-B', path], { t, command: 'python3', env: all });
}

/** Runs a program that tests its app, in each language. */
const CLIENTS: Readonly<Record<Language, (t: TestContext) => RunningCommand>> = {
  TypeScript: (t) => runNode(t, `${ROOT}test/fixtures/potassium-client.mjs`, makeCues(t).env),
  Python: (t) => runPython(t, `${ROOT}test/fixtures/python/potassium-client.py`, makeCues(t).env),
};

/** A copy of an app, alone in a folder in which it finds what it imports. */
function folderWithSpace(t: { after(fn: () => void): void }, app: string): { folder: string; path: string } {
  const folder = mkdtempSync(join(tmpdir(), 'banana serve '));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(ROOT, join(folder, 'node_modules/banana-serve'));
  symlinkSync(`${ROOT}node_modules/tsx`, join(folder, 'node_modules/tsx'));
  const path = join(folder, `my app${extname(app)}`);
  copyFileSync(app, path);
  return { folder, path };
}

const PRINTED = {
  'potassium-serves.ts': 'ended with 0\n',
  'potassium-legacy.ts': '',
  'functions-serve.ts': 'shut down\nended with 0\n',
};

async function untilAnswers(url: string, program: RunningCommand): Promise<void> {
  const isReady = async (): Promise<boolean> =>
    fetch(`${url}/healthcheck`).then(
      ({ status }) => status === 200,
      () => false,
    );
  await eventually(isReady, 60_000, () => program.stdout() + program.stderr());
}

for (const [name, workers, signal] of [
  ['potassium-serves.ts', 2, 'SIGTERM'],
  ['potassium-legacy.ts', 1, 'SIGINT'],
  ['functions-serve.ts', 1, 'SIGINT'],
] as const) {
  test(`${name}, run directly, is the server: it answers, and ends by ${signal} with 0`, LIMIT, async (t) => {
    const port = await holdPort();
    const isInSpace = name === 'potassium-legacy.ts'; // one of them, in a folder with a space in its name
    const { folder, path } = isInSpace
      ? folderWithSpace(t, fixture(name))
      : { folder: ROOT, path: fixture(name) };
    const program = runNode(t, path, { TEST_PORT: String(port) }, folder);
    const url = `http://127.0.0.1:${port}`;
    await untilAnswers(url, program);
    const status = await untilPotassium({ url }, ({ workers_ready }) => workers_ready === workers);
    assert.deepEqual([status.workers, status.restarts], [workers, 0]);
    const answer = await post({ url }, '/', { name: 'you' });
    assert.equal(answer.status, 200, answer.text);
    const pids = await workerPids(url);
    assert.ok(!pids.includes(program.process.pid ?? 0), 'the app runs in workers');
    program.process.kill(signal);
    assert.deepEqual(await program.ended, { code: 0, signal: null });
    assert.deepEqual(pids.filter(isAlive), []);
    assert.equal(program.stdout(), PRINTED[name], 'the end is told once, by this process');
  });
}

test(
  'an app that starts itself on a port in use ends with the error and the exit code for that',
  LIMIT,
  async (t) => {
    const taken = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => taken.once('listening', resolve));
    t.after(() => taken.close());
    const { port } = taken.address() as AddressInfo;
    const program = runNode(t, fixture('potassium-serves.ts'), { TEST_PORT: String(port) });
    assert.deepEqual(await program.ended, { code: 4, signal: null });
    assert.match(
      program.stderr(),
      new RegExp(`port ${port} of 127\\.0\\.0\\.1 \\(serve\\(\\{ port \\}\\)\\) is in use`),
    );
  },
);

test('serve() with a value that is not a function names it', () => {
  const wrong = { inference: 'no function' } as unknown as ServedFunctions;
  return assert.rejects(serve(wrong), {
    name: 'TypeError',
    message: /run\(\{ inference \}\) needs a function/,
  });
});

test(
  'an app in Python that is run directly starts no server: it prints the command that does, and ends',
  { ...LIMIT, skip: needs('python3') },
  async (t) => {
    const program = runPython(t, `${ROOT}test/fixtures/python-apps/potassium-serves.py`, { TEST_PORT: '1' });
    assert.deepEqual(await program.ended, { code: 1, signal: null });
    assert.match(
      program.stderr(),
      /potassium-serves\.py", line \d+, in <module>\n[^]*RuntimeError: app\.serve\(\) starts no server by itself: run `banana-serve app\.py`/,
    );
    assert.equal(program.stdout(), '');
  },
);

async function workerPids(url: string): Promise<number[]> {
  const { model } = (await (await fetch(`${url}/status`)).json()) as {
    model: { workers: { pid: number }[] };
  };
  return model.workers.map(({ pid }) => pid);
}
