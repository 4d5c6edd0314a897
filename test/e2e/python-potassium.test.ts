/** Potassium apps in Python, as they are: both generations, batches, webhooks, stores, WebSockets. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { makeCues, type Cues } from '../helpers/cues.js';
import { needs } from '../helpers/needs.js';
import { endOf, post, potassiumStatus, startJob } from '../helpers/potassium.js';
import { startReceiver } from '../helpers/receiver.js';
import { startHere } from '../helpers/here.js';
import { ROOT, call, type Server, type StartOptions } from '../helpers/server.js';
import { openSocket } from '../helpers/web-socket.js';

const LIMIT = { timeout: 240_000, skip: needs('python3') };
const APPS = `${ROOT}test/fixtures/python-apps`;
/** Stubs for the other imports of the quickstarts. */
const STUBS = { PYTHONPATH: `${APPS}/stubs` };
const MASKED = { prompt: 'Hello I am a [MASK] model.' };
const FILLED = { outputs: [{ sequence: 'Hello I am a fashion model.', score: 0.25 }] };

function python(name: string): string {
  const path = `${APPS}/${name}`;
  assert.ok(existsSync(path), path);
  return path;
}

async function start(app: string, options: StartOptions): Promise<Server> {
  const server = await startHere(app, options);
  await server.until(({ state }) => state === 'ready');
  return server;
}

test('the quickstart of the second generation runs as it is, with its guard', LIMIT, async (t) => {
  const server = await start(python('quickstart.py'), { t, env: STUBS });
  const answer = await post(server, '/', MASKED);
  assert.deepEqual([answer.status, answer.json()], [200, FILLED]);
  assert.deepEqual((await call(`${server.url}/_k/warmup`, '')).json(), { warm: true });
  assert.equal((await post(server, '/nope', {})).status, 404);
  const { sequence_number, gpu_available } = await potassiumStatus(server, '/__status__');
  assert.deepEqual([sequence_number, gpu_available], [3, true]);
  await server.stop();
});

test(
  'without the guard, and without any call of serve, it is found under whatever name',
  LIMIT,
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'banana-potassium-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const [before = ''] = readFileSync(python('quickstart.py'), 'utf8').split('if __name__');
    writeFileSync(join(folder, 'my-model.py'), before.replace(/\bapp\b(?!")/g, 'server'));
    const server = await start(join(folder, 'my-model.py'), { t, env: STUBS });
    assert.deepEqual((await post(server, '/', MASKED)).json(), FILLED);
    await server.stop();
  },
);

test(
  'the quickstart of the first generation serves itself: its import ends there, its arguments are ignored aloud',
  LIMIT,
  async (t) => {
    const receiver = await startReceiver(t);
    const env = { ...STUBS, HOOK: receiver.url };
    const server = await start(python('quickstart-first.py'), { t, env });
    // The content type did not matter then.
    const answer = await call(server.url, JSON.stringify(MASKED), {
      'content-type': 'text/plain',
      'x-request-id': 'r1',
    });
    assert.deepEqual([answer.status, answer.json()], [200, FILLED]);
    await receiver.until(1);
    const { body, headers } = receiver.arrivals[0] as (typeof receiver.arrivals)[number];
    assert.deepEqual([JSON.parse(body.toString()), headers['x-banana-request-id']], [FILLED, 'r1']);
    assert.equal(server.stdout(), '', 'no line behind serve ran, and no handler of errors');
    await server.untilPrinted(/quickstart-first\.py:\d+: UserWarning: app\.serve\(\) ignores its arguments/);
    await server.stop();
  },
);

interface Running {
  readonly server: Server;
  readonly cues: Cues;
}

async function startEverything(t: TestContext, options: StartOptions = {}): Promise<Running> {
  const cues = makeCues(t);
  const env = { ...cues.env, ...options.env };
  return { cues, server: await start(python('potassium-app.py'), { ...options, t, env }) };
}

test('a batch route takes requests together', LIMIT, async (t) => {
  const { server } = await startEverything(t, { args: ['--batch-size', '4', '--max-batch-delay', '60s'] });
  const together = await Promise.all([1, 2, 3, 4].map((i) => post(server, '/batch', i)));
  assert.deepEqual(
    together.map((answer) => answer.json()),
    [1, 2, 3, 4].map((i) => [i, 4]),
  );
  await server.stop();
});

test(
  'background functions send their results by webhook, their own posts and errors too',
  LIMIT,
  async (t) => {
    const receiver = await startReceiver(t);
    const { server } = await startEverything(t, { env: { HOOK: receiver.url } });
    const posting = await startJob(server, '/later', { posts: `${receiver.url}/mine` }, 'posting');
    assert.equal((await endOf(server, posting)).state, 'succeeded', 'it waited for the delivery');
    await endOf(server, await startJob(server, '/told', { result: [1] }, 'told'));
    await receiver.until(2);
    await endOf(server, await startJob(server, '/told', { throws: 'x' }, 'failed'));
    await receiver.until(3);
    const told = receiver.arrivals.map(({ path, headers, body }) => {
      const value = JSON.parse(body.toString()) as { error?: { code: string } };
      return [path, headers['x-banana-request-id'], value.error?.code ?? value];
    });
    assert.deepEqual(told, [
      ['/mine', 'posting', { from: 'posting' }],
      ['/', 'told', [1]],
      ['/', 'failed', 'SERVE_INFERENCE_FAILED'],
    ]);
    await server.stop();
  },
);

test(
  'a local store is shared by the workers and outlives them, whatever the files beside the app are called',
  LIMIT,
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'banana-store-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const env = { STORE: join(folder, 'own/store.db') };
    const args = ['--workers', '2'];
    const server = await start(python('store-app/app.py'), { t, env, args, expectedRestarts: 1 });
    await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
    const writer = (await post(server, '/set', 'key')).json<number>();
    assert.equal((await post(server, '/die', {})).status, 500);
    const readers = new Set<number>();
    while (readers.size < 2) {
      const answers = await Promise.all([1, 2, 3, 4].map(() => post(server, '/get', 'key')));
      for (const answer of answers) {
        const { by, kept } = answer.json<{ by: number; kept: number[] }>();
        assert.deepEqual(kept, [writer]);
        readers.add(by);
      }
    }
    const dying = (await post(server, '/get', 'dying')).json<{ kept: number[] }>();
    assert.equal(dying.kept.length, 1, 'what was set a moment before the death is kept');
    await server.stop();
  },
);

async function startSockets(t: TestContext, args: readonly string[] = []): Promise<Running> {
  const cues = makeCues(t);
  const env = { ...STUBS, ...cues.env };
  const server = await start(python('potassium-websockets.py'), { t, env, args });
  return { server, cues };
}

test('a WebSocket talks in text, bytes and JSON, with functions of either kind', LIMIT, async (t) => {
  const { server, cues } = await startSockets(t);
  const tokens = await openSocket(t, server, '/ws');
  tokens.socket.send(JSON.stringify({ prompt: 'a', tokens: 3 }));
  assert.deepEqual(await tokens.heard(3), [' word', ' word', ' word']);
  assert.deepEqual(await tokens.closed, [1000, '']);
  const large = Buffer.alloc(3 * 2 ** 20, 'é');
  for (const path of ['/echo', '/async-echo']) {
    const client = await openSocket(t, server, path, { 'x-request-id': path });
    for (const message of ['hello', '', 'é漢🍌', Buffer.from([0, 255]), large]) client.socket.send(message);
    const heard = await client.heard(5);
    assert.deepEqual(heard.slice(0, 4), ['hello', '', 'é漢🍌', Buffer.from([0, 255])]);
    assert.ok(large.equals(heard[4] as Buffer));
    client.socket.close();
    await client.closed;
  }
  await cues.untilNoted('left /echo: True');
  const kinds = await openSocket(t, server, '/kinds');
  for (const message of ['t', 'b', '{"j":1}']) kinds.socket.send(message);
  const [json, bytes] = await kinds.heard(2);
  assert.deepEqual(JSON.parse(String(json)), { text: 't', bytes: [98], json: { j: 1 } });
  assert.deepEqual(bytes, Buffer.from([0, 255]));
  assert.deepEqual(await kinds.closed, [4001, 'enough']);
  await server.stop();
});

test(
  'the async function of a WebSocket is cancelled when its client leaves, and may read its last messages',
  LIMIT,
  async (t) => {
    const { server, cues } = await startSockets(t);
    const leaving = await openSocket(t, server, '/dreams', { 'x-request-id': 'left' });
    leaving.socket.send('last words');
    await cues.untilNoted('begun left');
    leaving.socket.close();
    await cues.untilNoted("woken left: ['last words']");
    await assertServesSockets(t, server);
    await server.stop();
  },
);

test('the async function of a WebSocket is cancelled when its time is up', LIMIT, async (t) => {
  const { server, cues } = await startSockets(t, ['--run-timeout', '3s']);
  const slow = await openSocket(t, server, '/dreams', { 'x-request-id': 'slow' });
  assert.deepEqual(await slow.closed, [
    1011,
    'SERVE_INFERENCE_TIMEOUT: The call ran longer than 3000 ms (--run-timeout).',
  ]);
  await cues.untilNoted('woken slow: []');
  await assertServesSockets(t, server);
  await server.stop();
});

async function assertServesSockets(t: TestContext, server: Server): Promise<void> {
  const next = await openSocket(t, server, '/echo');
  next.socket.send('alive');
  assert.deepEqual(await next.heard(1), ['alive']);
}

test('wrong uses of a WebSocket, and a client that has left, raise errors in the app', LIMIT, async (t) => {
  const { server, cues } = await startSockets(t);
  const mistaken = await openSocket(t, server, '/mistakes');
  const told = await mistaken.heard(4);
  for (const [i, expected] of [
    /^TypeError: .*int/,
    /^ValueError: close\(\) takes/,
    /^TypeError/,
    /^TypeError/,
  ].entries())
    assert.match(String(told[i]), expected);
  const leaving = await openSocket(t, server, '/gone');
  leaving.socket.send('here');
  await cues.untilNoted('was there');
  leaving.socket.close();
  await cues.untilNoted('send: The WebSocket is closed.');
  assert.ok(cues.notes().includes('receive: The WebSocket is closed.'));
  const failing = await openSocket(t, server, '/throws');
  failing.socket.send('now');
  const [code, reason] = await failing.closed;
  assert.deepEqual([code, reason], [1011, 'SERVE_INFERENCE_FAILED: The model failed on this call.']);
  await server.untilPrinted('the secret of this app');
  await server.stop();
});
