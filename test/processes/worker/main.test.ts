/** The promises of the worker of Node that are its own; those of every worker are in test/wire. */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { V8_VERSION } from '../../../protocol/values/v8-values.js';
import { printMark } from '../../../protocol/wire/print-mark.js';
import { WORKER_ENTRY } from '../../../supervisor/runtimes/node.js';
import { appFolder } from '../../worker/app-folder.js';
import { callWith } from '../../worker/calls.js';
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

test('hello says the version of V8 values, and loaded the options of the app that are data', async (t) => {
  const { worker, app } = workerOf(
    t,
    `export const inference = (input) => input;
     export const config = { runTimeout: '5s', odd() {} };`,
  );
  assert.equal((await worker.next('hello')).message.values, V8_VERSION);
  worker.sendStart(app);
  const { info } = (await worker.next('loaded')).message;
  assert.deepEqual(info.modelOptions, { runTimeout: '5s' });
});

test('a worker that an app forks, as cluster.fork() does, ends with what to do', async () => {
  const { stderr, ended } = forked(WORKER_ENTRY);
  assert.match(await stderr, /^cluster\.fork\(\) in an app .*cluster\.setupPrimary\(\{ exec: /);
  assert.equal(await ended, 1);
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

const FATALS: readonly (readonly [what: string, source: string, message: RegExp])[] = [
  [
    'whose init rejects',
    'export const init = async () => { throw undefined; }; export const inference = () => 1;',
    /app\.mjs: init threw: thrown value: undefined$/,
  ],
  [
    'whose example gives what cannot be encoded',
    'export const inference = () => 2n ** 64n; export const example = 1;',
    /the example call threw: .*output is a BigInt/,
  ],
  [
    'whose example does not fit its schema',
    `const validate = () => ({ issues: [{ message: 'too long', path: ['deep', 0] }] });
    export const input = { '~standard': { version: 1, vendor: 'own', validate } };
    export const inference = () => 1; export const example = 1;`,
    /app\.mjs: the example call threw: .*deep\.0: too long/,
  ],
  [
    'whose example stream throws',
    "export const inference = function* () { yield 1; throw new Error('mid'); }; export const example = 1;",
    /the example call threw: mid/,
  ],
  [
    'with an unhandled rejection in init',
    "export const init = () => { Promise.reject(new Error('lost')); return new Promise(() => {}); }; export const inference = () => 1;",
    /^lost$/,
  ],
];

for (const [what, source, message] of FATALS) {
  test(`an app ${what} ends its worker with fatal SERVE_INIT_FAILED, worth another try`, async (t) => {
    const { worker, app } = workerOf(t, source);
    await worker.next('hello');
    worker.sendStart(app);
    const fatal = (await worker.next('fatal')).message;
    assert.deepEqual([fatal.code, fatal.permanent, fatal.transient], ['SERVE_INIT_FAILED', false, false]);
    assert.match(fatal.message, message);
    assert.deepEqual(await worker.exit, { code: 1, signal: null });
  });
}

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
