import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { MONOTONIC_OFFSET_MS } from '../../../protocol/wire/begun-note.js';
import { V8_VERSION } from '../../../protocol/values/v8-values.js';
import { PROTOCOL_VERSION, type Call } from '../../../protocol/wire/messages.js';
import { printMark } from '../../../protocol/wire/print-mark.js';
import { WORKER_ENTRY } from '../../../supervisor/runtimes/node.js';
import { GOLDEN, type GoldenFrame } from '../../protocol/golden-frames.js';
import { appFolder } from '../../worker/app-folder.js';
import { callWith } from '../../worker/calls.js';
import { assertEchoesTenMegabytes } from './large-echo.js';
import { WorkerProcess } from './worker-process.js';

/** A worker whose app is this JavaScript; not started yet. */
function workerOf(t: TestContext, source: string): { worker: WorkerProcess; app: string } {
  const folder = appFolder(t, { 'app.mjs': source });
  return { worker: new WorkerProcess(t), app: join(folder, 'app.mjs') };
}

async function started(t: TestContext, source: string): Promise<WorkerProcess> {
  const { worker, app } = workerOf(t, source);
  await worker.start(app);
  return worker;
}

function forked(program: string): { stderr: Promise<string>; ended: Promise<unknown> } {
  const child = fork(program, { silent: true });
  return {
    stderr: text(child.stderr as Readable),
    ended: once(child, 'exit').then(([code]) => code as unknown),
  };
}

const types = (worker: WorkerProcess): string[] => worker.received.map(({ message }) => message.type);

test('a worker sends hello, loaded and ready, in this order', async (t) => {
  const { worker, app } = workerOf(
    t,
    `export const inference = (input) => input;
     export const example = { a: 1 };
     export const shutdown = () => {};
     export const config = { runTimeout: '5s', odd() {} };`,
  );
  const hello = await worker.next('hello');
  assert.deepEqual(hello.message, {
    type: 'hello',
    protocol: PROTOCOL_VERSION,
    runtime: `node ${process.version}`,
    values: V8_VERSION,
  });
  worker.sendStart(app);
  const loaded = await worker.next('loaded');
  assert.deepEqual(loaded.message.info, {
    routes: [{ path: '/', kind: 'handler', input: 'any', webhook: '', maxBatch: 1, attempts: 1 }],
    modelOptions: { runTimeout: '5s' },
    example: '{"a":1}',
    shutdown: true,
    api: 'banana',
  });
  const ready = await worker.next('ready');
  assert.ok(ready.message.initMs >= 0);
  assert.deepEqual(worker.order, ['hello', 'loaded', 'ready']);
});

test('a worker that an app forks, as cluster.fork() does, ends with what to do', async () => {
  const { stderr, ended } = forked(WORKER_ENTRY);
  assert.match(await stderr, /^cluster\.fork\(\) in an app .*cluster\.setupPrimary\(\{ exec: /);
  assert.equal(await ended, 1);
});

test('a call leaves a note that it has begun, and is answered', async (t) => {
  const worker = await started(t, 'export const inference = (input, ctx) => ({ input, id: ctx.requestId });');
  worker.callJson(7, { a: 1 });
  assert.deepEqual(await worker.answer(), { input: { a: 1 }, id: 'r7' });
  const { id, atMs } = worker.begun;
  assert.equal(id, 7);
  const ageMs = MONOTONIC_OFFSET_MS + performance.now() - atMs;
  assert.ok(ageMs >= -1 && ageMs < 60_000, `begun ${ageMs} ms ago by the clock of all processes`);
});

const BATCHES = `export const inferenceBatch = (inputs, ctxs) =>
  inputs.map((input, i) => ({ input, of: inputs.length, id: ctxs[i].requestId }));`;

test('a frame with three calls of a batch is one run of the batch function, and three answers', async (t) => {
  const { worker, app } = workerOf(t, BATCHES);
  await worker.next('hello');
  worker.sendStart(app);
  const { routes } = (await worker.next('loaded')).message.info;
  assert.deepEqual(routes, [
    { path: '/', kind: 'handler', input: 'any', webhook: '', maxBatch: 0xffff, attempts: 1 },
  ]);
  await worker.next('ready');
  const calls = [1, 2, 3].map((id) => callWith({ id, requestId: `r${id}`, bodyBytes: id === 2 ? 0 : 3 }));
  worker.send({ type: 'call', calls, inlineBytes: [3, 0, 3], batch: 1, last: true }, Buffer.from('"a""c"'));
  assert.deepEqual(await worker.answer(), { input: 'a', of: 3, id: 'r1' });
  assert.deepEqual(await worker.answer(), { input: null, of: 3, id: 'r2' });
  assert.deepEqual(await worker.answer(), { input: 'c', of: 3, id: 'r3' });
  assert.equal(worker.begun.id, 3);
});

const HAS_CALLER = `import { AsyncLocalStorage } from 'node:async_hooks';
const caller = new AsyncLocalStorage();
export const config = { repeatable: true };
const enter = (name) => {
  const before = caller.getStore() ?? 'nobody';
  caller.enterWith(name);
  return before;
};
`;

test('the async context that a call enters is seen by its stream, and by no other call', async (t) => {
  for (const functions of [
    'export const inference = (name) => enter(name);',
    'export const inference = async (name) => enter(name);',
    'export async function inference(name) { await null; return enter(name); }',
  ]) {
    const worker = await started(t, HAS_CALLER + functions);
    for (const id of [1, 2, 3]) worker.callJson(id, `r${id}`);
    for (const _ of [1, 2, 3]) assert.equal(await worker.answer(), 'nobody', functions);
    worker.callJson(4, 'later');
    assert.equal(await worker.answer(), 'nobody', functions);
  }
  const streams = await started(
    t,
    `${HAS_CALLER}function* told(before) { yield before; yield caller.getStore(); }
     export const inference = (name) => told(enter(name));`,
  );
  for (const [id, name] of ['a', 'b'].entries()) {
    streams.callJson(id, name);
    const chunks = [await streams.next('chunk'), await streams.next('chunk')];
    assert.deepEqual(
      chunks.map(({ body }) => body.toString()),
      ['nobody', name],
    );
  }
});

test('calls that run alone, since their batch threw, see nothing of what each other enters', async (t) => {
  const worker = await started(
    t,
    `${HAS_CALLER}export const inference = (name) => enter(name);
     export const inferenceBatch = () => { throw new Error('one of them'); };`,
  );
  sendTwo(worker);
  assert.deepEqual([await worker.answer(), await worker.answer()], ['nobody', 'nobody']);
});

test('the streams of a batch see nothing of what each other enters', async (t) => {
  const worker = await started(
    t,
    `${HAS_CALLER}function* told(name) { yield enter(name); yield caller.getStore(); }
     export const inferenceBatch = (names) => names.map(told);`,
  );
  sendTwo(worker);
  const chunks = [];
  while (chunks.length < 4) chunks.push((await worker.next('chunk')).body.toString());
  assert.deepEqual(chunks.sort(), ['a', 'b', 'nobody', 'nobody']);
});

function sendTwo(worker: WorkerProcess): void {
  const calls = [1, 2].map((id) => callWith({ id, bodyBytes: 3 }));
  worker.send({ type: 'call', calls, inlineBytes: [3, 3], batch: 1, last: true }, Buffer.from('"a""b"'));
}

test('a batch runs when its last frame and all its bodies are there, without the calls cancelled until then', async (t) => {
  const worker = await started(t, BATCHES);
  const call = (id: number): Call => callWith({ id, requestId: `r${id}`, bodyBytes: 3 });
  worker.send(
    { type: 'call', calls: [call(1)], inlineBytes: [3], batch: 5, last: false },
    Buffer.from('"a"'),
  );
  worker.send({ type: 'call', calls: [call(2)], inlineBytes: [1], batch: 5, last: false }, Buffer.from('"'));
  worker.send({ type: 'call', calls: [call(3)], inlineBytes: [1], batch: 5, last: false }, Buffer.from('"'));
  worker.send({ type: 'call', calls: [], inlineBytes: [], batch: 5, last: true });
  for (const id of [1, 3]) worker.send({ type: 'cancel', id, reason: 'the client left' });
  for (const id of [1, 3]) {
    const { message } = await worker.next('error');
    assert.deepEqual([message.id, message.code], [id, 'SERVE_CANCELLED']);
  }
  assert.equal(worker.begun.id, 0, 'nothing has begun');
  worker.send({ type: 'body', id: 2 }, Buffer.from('b"'));
  assert.deepEqual(await worker.answer(), { input: 'b', of: 1, id: 'r2' });
});

test('more calls at once than a route takes end the worker', async (t) => {
  const worker = await started(t, 'export const inference = (input) => input;');
  const calls = [1, 2].map((id) => callWith({ id }));
  worker.send({ type: 'call', calls, inlineBytes: [0, 0], batch: 1, last: true });
  assert.equal((await worker.exit).signal, 'SIGKILL');
  assert.match(await worker.stderr, /a batch of 2 calls; the route \/ takes at most 1/);
});

test('ten megabytes go in and come out in fragments', async (t) => {
  const worker = await started(t, 'export const inference = (bytes) => bytes;');
  await assertEchoesTenMegabytes(worker);
});

test('a cancel while the body is still arriving ends the call, and the worker serves on', async (t) => {
  const worker = await started(t, 'export const inference = (input) => input;');
  worker.send(
    { type: 'call', calls: [callWith({ id: 1, bodyBytes: 100 })], inlineBytes: [5], batch: 1, last: true },
    Buffer.from('12345'),
  );
  worker.send({ type: 'cancel', id: 1, reason: 'the client left' });
  const error = await worker.next('error');
  assert.deepEqual([error.message.id, error.message.code], [1, 'SERVE_CANCELLED']);
  worker.callJson(1, 'the id is free again');
  assert.equal(await worker.answer(), 'the id is free again');
});

test('stop lets the running call finish, runs shutdown, and exits with 0; calls not begun are left', async (t) => {
  const worker = await started(
    t,
    `export function inference(_, ctx) {
       return new Promise((resolve) => ctx.signal.addEventListener('abort', () => resolve(String(ctx.signal.reason))));
     }
     export const shutdown = () => console.log('bye');`,
  );
  worker.callJson(1, null);
  worker.callJson(2, null);
  await worker.untilBegun(1);
  worker.send({ type: 'stop', graceMs: 1000 });
  assert.match(String(await worker.answer()), /AbortError: the server is stopping/);
  assert.deepEqual(await worker.exit, { code: 0, signal: null });
  assert.deepEqual(types(worker), [], 'nothing about call 2');
  assert.equal(await worker.stdout, 'bye\n');
});

test('stop during init ends the worker without running a shutdown that would tear down half an init', async (t) => {
  const { worker, app } = workerOf(
    t,
    `export const init = () => { console.log('in init'); return new Promise((resolve) => setTimeout(resolve, 60_000)); };
     export const inference = () => 1;
     export const shutdown = () => console.log('shutdown');`,
  );
  await worker.next('hello');
  worker.sendStart(app);
  await worker.next('loaded');
  worker.send({ type: 'stop', graceMs: 1000 });
  assert.deepEqual(await worker.exit, { code: 0, signal: null });
  assert.equal(await worker.stdout, 'in init\n');
});

test('a shutdown that throws is reported on stderr and exits with 1', async (t) => {
  const worker = await started(
    t,
    `export const inference = () => 1;
     export const shutdown = () => { throw new Error('stuck'); };`,
  );
  worker.send({ type: 'stop', graceMs: 1000 });
  assert.deepEqual(await worker.exit, { code: 1, signal: null });
  assert.match(
    await worker.stderr,
    /^shutdown threw: Error: stuck\n +at [^\n]*\bshutdown [^\n]*app\.mjs:2:\d+\)\n$/,
  );
});

test('an answer of eight megabytes arrives whole although stop follows its call at once', async (t) => {
  const worker = await started(t, 'export const inference = () => new Uint8Array(8_000_000);');
  worker.callJson(1, null);
  await worker.untilBegun(1);
  worker.send({ type: 'stop', graceMs: 1000 });
  assert.equal((await worker.exit).code, 0);
  const bytes = worker.received.reduce((sum, { body }) => sum + body.length, 0);
  assert.equal(bytes, 8_000_000);
});

for (const [what, source] of [
  ['idle', 'export const inference = () => 1;'],
  [
    'busy with a call that waits',
    'export const inference = () => new Promise(() => setInterval(() => {}, 1000));',
  ],
] as const) {
  test(`a worker that is ${what} dies with its front, and so do the programs it started`, async (t) => {
    const worker = await started(
      t,
      `import { spawn } from 'node:child_process';
       spawn('sleep', ['1000'], { stdio: 'inherit' });
       ${source}`,
    );
    worker.callJson(1, null);
    await worker.untilBegun(1);
    worker.leave();
    assert.deepEqual(await worker.exit, { code: null, signal: 'SIGKILL' });
    await worker.stdout; // ends only when the last process that holds it is gone
  });
}

test('a program that the app starts inherits neither fd 3 nor fd 4', async (t) => {
  const worker = await started(
    t,
    `import { execFileSync } from 'node:child_process';
     const probe = 'for fd in 1 3 4; do [ -e /dev/fd/$fd ] && echo $fd; done; true';
     export const inference = () => execFileSync('sh', ['-c', probe]).toString();`,
  );
  worker.callJson(1, null);
  assert.equal(await worker.answer(), '1\n');
});

test('nothing that the app writes to fd 1 and 2 disturbs the frames', async (t) => {
  const worker = await started(
    t,
    `import { writeSync } from 'node:fs';
     export function inference() { console.log('out'); writeSync(1, 'raw'); console.error('err'); return 1; }`,
  );
  worker.callJson(1, null);
  assert.equal(await worker.answer(), 1);
  worker.send({ type: 'stop', graceMs: 1000 });
  assert.equal((await worker.exit).code, 0);
  assert.equal(await worker.stdout, 'out\nraw');
  assert.equal(await worker.stderr, 'err\n');
});

test('with a print mark, each print is marked with its call, after an await too', async (t) => {
  const { worker, app } = workerOf(
    t,
    `export async function inference(input) { await 1; console.log(input); }
     console.log('loading');`,
  );
  await worker.start(app, { printMark: 'k3' });
  worker.callJson(1, 'one');
  worker.callJson(2, 'two');
  await worker.next('result');
  await worker.next('result');
  worker.send({ type: 'stop', graceMs: 1000 });
  await worker.exit;
  const stdout = await worker.stdout;
  const owners = [...ownersOf(stdout, 'k3')];
  assert.deepEqual(owners, [
    ['', 'loading\n'],
    ['r1', 'one\n'],
    ['r2', 'two\n'],
  ]);
});

/** Each stretch of text with the request it belongs to. */
function* ownersOf(text: string, mark: string): Generator<[string, string]> {
  let owner = '';
  // eslint-disable-next-line no-control-regex -- a mark is made of control characters
  for (const part of text.split(/(\x1f[^\x1f]*\x1f)/)) {
    if (part.startsWith('\x1f')) owner = part.slice(`\x1f${mark} `.length, -1);
    else if (part !== '') yield [owner, part];
  }
  assert.ok(text.includes(printMark(mark, 'r1')));
}

const FATALS: readonly (readonly [
  what: string,
  source: string,
  expected: { code: string; permanent: boolean; transient?: boolean },
  message: RegExp,
])[] = [
  [
    'whose init throws',
    "export const init = () => { throw new Error('no GPU'); }; export const inference = () => 1;",
    { code: 'SERVE_INIT_FAILED', permanent: false },
    /app\.mjs:1:\d+: init threw: no GPU$/,
  ],
  [
    'whose init rejects',
    'export const init = async () => { throw undefined; }; export const inference = () => 1;',
    { code: 'SERVE_INIT_FAILED', permanent: false },
    /app\.mjs: init threw: thrown value: undefined$/,
  ],
  [
    'whose example throws',
    'export const inference = (x) => x.a.b; export const example = {};',
    { code: 'SERVE_INIT_FAILED', permanent: false },
    /the example call threw: Cannot read/,
  ],
  [
    'whose example gives what cannot be encoded',
    'export const inference = () => 2n ** 64n; export const example = 1;',
    { code: 'SERVE_INIT_FAILED', permanent: false },
    /the example call threw: .*output is a BigInt/,
  ],
  [
    'whose example stream throws',
    "export const inference = function* () { yield 1; throw new Error('mid'); }; export const example = 1;",
    { code: 'SERVE_INIT_FAILED', permanent: false },
    /the example call threw: mid/,
  ],
  [
    'whose init cannot reach a server',
    "export const init = () => { throw new Error('no store', { cause: Object.assign(new Error('x'), { code: 'ECONNREFUSED' }) }); }; export const inference = () => 1;",
    { code: 'SERVE_INIT_FAILED', permanent: false, transient: true },
    /init threw: no store$/,
  ],
  [
    'that finds the disk full when imported',
    "throw Object.assign(new Error('no room'), { code: 'ENOSPC' });",
    { code: 'SERVE_APP_INVALID', permanent: false, transient: true },
    /importing the app threw: Error: no room/,
  ],
  [
    'without an inference',
    'export const predict = () => 1;',
    { code: 'SERVE_APP_INVALID', permanent: true },
    /exports no `inference` function/,
  ],
  [
    'with a syntax error',
    'export const = 1;',
    { code: 'SERVE_APP_INVALID', permanent: true },
    /app\.mjs:1: syntax error/,
  ],
  [
    'that throws when imported',
    "throw new Error('download failed');",
    { code: 'SERVE_APP_INVALID', permanent: false },
    /importing the app threw: Error: download failed/,
  ],
  [
    'with an unhandled rejection in init',
    "export const init = () => { Promise.reject(new Error('lost')); return new Promise(() => {}); }; export const inference = () => 1;",
    { code: 'SERVE_INIT_FAILED', permanent: false },
    /^lost$/,
  ],
];

for (const [what, source, expected, message] of FATALS) {
  test(`an app ${what} ends its worker with a fatal ${expected.code}, ${expected.permanent === true ? 'for good' : 'worth another try'}`, async (t) => {
    const { worker, app } = workerOf(t, source);
    await worker.next('hello');
    worker.sendStart(app);
    const fatal = await worker.next('fatal');
    const { code, permanent, transient } = fatal.message;
    assert.deepEqual({ code, permanent, transient }, { transient: false, ...expected });
    assert.match(fatal.message.message, message);
    assert.deepEqual(await worker.exit, { code: 1, signal: null });
  });
}

test('an error text of any length still arrives as a fatal', async (t) => {
  const source =
    "export const init = () => { throw new Error('😀'.repeat(2_000_000)); }; export const inference = () => 1;";
  const { worker, app } = workerOf(t, source);
  await worker.next('hello');
  worker.sendStart(app);
  assert.equal((await worker.next('fatal')).message.code, 'SERVE_INIT_FAILED');
});

test('an unhandled rejection lets the running call finish, begins no other, and ends the worker', async (t) => {
  const worker = await started(
    t,
    `export function inference() {
       Promise.reject(new Error('lost'));
       return new Promise((resolve) => setTimeout(resolve, 50, 'still answered'));
     }`,
  );
  worker.callJson(1, null);
  worker.callJson(2, null);
  assert.equal(await worker.answer(), 'still answered');
  const fatal = await worker.next('fatal');
  assert.deepEqual([fatal.message.code, fatal.message.permanent], ['SERVE_WORKER_LOST', false]);
  assert.deepEqual(await worker.exit, { code: 1, signal: null });
  assert.match(
    await worker.stderr,
    /^Unhandled rejection: Error: lost\n +at [^\n]*\binference [^\n]*app\.mjs:2:\d+\)\n$/,
  );
  assert.deepEqual(types(worker), [], 'nothing about call 2');
  assert.equal(worker.begun.id, 1, 'call 2 is left to the front');
});

const goldenFrame = (name: string): Buffer =>
  (GOLDEN.find((golden) => golden.name === name) as GoldenFrame).frame;

for (const [what, bytes, said] of [
  [
    'garbage',
    Buffer.from('POST / HTTP/1.1\r\nHost: localhost\r\n'),
    /The front broke the protocol: frame head of/,
  ],
  [
    'a message that only a worker sends',
    goldenFrame('ready'),
    /The front broke the protocol: a worker cannot take ready/,
  ],
  [
    'a fragment of no call',
    Buffer.from('0700000001000000' + '92a4626f647909' + '00', 'hex'),
    /a body fragment for unknown call 9/,
  ],
] as const) {
  test(`a worker that reads ${what} reports it and dies`, async (t) => {
    const worker = await started(t, 'export const inference = () => 1;');
    worker.writeGarbage(bytes);
    await worker.exit;
    assert.match(await worker.stderr, said);
  });
}

test('a call before ready is a broken protocol, not a lost call', async (t) => {
  const { worker } = workerOf(t, 'export const inference = () => 1;');
  await worker.next('hello');
  worker.callJson(1, null);
  await worker.exit;
  assert.match(await worker.stderr, /The front broke the protocol: a call before ready/);
});
