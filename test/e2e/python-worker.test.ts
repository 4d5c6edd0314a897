/** A worker in another language, written from docs/wire.md: over bare frames, and served for real. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Unpackr } from 'msgpackr';
import { serve } from '../../index.js';
import { MONOTONIC_OFFSET_MS } from '../../protocol/wire/begun-note.js';
import { BodyAssembler, joinPieces } from '../../protocol/wire/body-assembler.js';
import { decodeHead } from '../../protocol/wire/codec.js';
import { FRAME_PREFIX_BYTES } from '../../protocol/wire/frame.js';
import { PROTOCOL_VERSION } from '../../protocol/wire/messages.js';
import { GOLDEN, GOLDEN_FILE } from '../protocol/golden-frames.js';
import { appFolder } from '../worker/app-folder.js';
import { callWith } from '../worker/calls.js';
import { WorkerProcess } from '../processes/worker/worker-process.js';
import { needs } from '../helpers/needs.js';
import { ROOT, call } from '../helpers/server.js';

const FOLDER = `${ROOT}test/fixtures/python`;
const COMMAND = ['python3', '-B', '-u', `${FOLDER}/worker.py`];

const OPTIONS = { timeout: 240_000, skip: needs('python3') };

async function startedWorker(t: TestContext): Promise<WorkerProcess> {
  const worker = new WorkerProcess(t, COMMAND);
  await worker.start('model.bin');
  return worker;
}

test(
  'the Python worker reads every golden head as we do, and writes it so that we read the same',
  OPTIONS,
  () => {
    const program = `
import json, sys
sys.path.insert(0, ${JSON.stringify(FOLDER)})
from worker import pack, unpack
golden = json.load(open(${JSON.stringify(fileURLToPath(GOLDEN_FILE))}))
heads = [bytes.fromhex(one["frame"])[8 : len(one["frame"]) // 2 - len(one["body"]) // 2] for one in golden]
print(json.dumps([[unpack(head), pack(unpack(head)).hex()] for head in heads]))`;
    const output = execFileSync('python3', ['-B', '-c', program], { encoding: 'utf8' });
    const read = JSON.parse(output) as [fields: unknown, packed: string][];
    assert.equal(read.length, GOLDEN.length);
    const unpackr = new Unpackr({ useRecords: false, mapsAsObjects: true, int64AsType: 'number' });
    for (const [i, { name, message, frame, body }] of GOLDEN.entries()) {
      const [fields, packed] = read[i] as [unknown, string];
      assert.deepEqual(
        fields,
        unpackr.unpack(frame.subarray(FRAME_PREFIX_BYTES, frame.length - body.length)),
        name,
      );
      assert.deepEqual(decodeHead(Buffer.from(packed, 'hex')), message, name);
    }
  },
);

test('the Python worker starts and answers a call', OPTIONS, async (t) => {
  const worker = new WorkerProcess(t, COMMAND);
  const hello = await worker.next('hello');
  assert.equal(hello.message.protocol, PROTOCOL_VERSION);
  assert.match(hello.message.runtime, /^python 3/);
  worker.sendStart('model.bin');
  assert.deepEqual((await worker.next('loaded')).message.info.routes, [
    { path: '/', kind: 'handler', input: 'any', webhook: '', maxBatch: 16, attempts: 1 },
  ]);
  assert.equal((await worker.next('log')).message.fields, '{"app": "model.bin"}');
  await worker.next('ready');
  worker.callJson(4_294_967_295, { prompt: 'hé' });
  assert.deepEqual(await worker.answer(), { prompt: 'hé', app: 'model.bin' });
  assert.equal(worker.begun.id, 4_294_967_295);
  const ageMs = MONOTONIC_OFFSET_MS + performance.now() - worker.begun.atMs;
  assert.ok(ageMs >= -1 && ageMs < 60_000, `begun ${ageMs} ms ago by the clock of all processes`);
});

test('the Python worker begins the calls of a batch together, and answers each', OPTIONS, async (t) => {
  const worker = await startedWorker(t);
  const calls = [1, 2, 3].map((id) => callWith({ id, bodyBytes: id === 2 ? 0 : 3 }));
  worker.send({ type: 'call', calls, inlineBytes: [3, 0, 3], batch: 1, last: true }, Buffer.from('"a""c"'));
  assert.deepEqual([await worker.answer(), await worker.answer(), await worker.answer()], ['c', null, 'a']);
  assert.equal(worker.begun.id, 3);
});

test(
  'the Python worker takes a batch in several frames, of which the last holds no call',
  OPTIONS,
  async (t) => {
    const worker = await startedWorker(t);
    for (const id of [1, 2]) {
      const message = { type: 'call', calls: [callWith({ id, bodyBytes: 14 })], inlineBytes: [14] } as const;
      worker.send({ ...message, batch: 7, last: false }, Buffer.from('{"together":1}'));
    }
    worker.send({ type: 'cancel', id: 2, reason: 'the client left' });
    worker.send({ type: 'call', calls: [], inlineBytes: [], batch: 7, last: true });
    assert.deepEqual(await worker.answer(), { together: 1, app: 'model.bin' });
    assert.equal((await worker.next('error')).message.code, 'SERVE_CANCELLED');
    assert.equal(worker.begun.id, 1);
  },
);

test('the Python worker takes and gives a megabyte in fragments', OPTIONS, async (t) => {
  const worker = await startedWorker(t);
  const body = Buffer.from(Array.from({ length: 1_000_000 }, (_, i) => i % 251));
  worker.call(1, body, { contentType: 'application/octet-stream' });
  const first = await worker.next('result');
  const assembler = new BodyAssembler<null>();
  let whole = assembler.start(1, null, first.message.bodyBytes, [first.body]);
  while (whole === null) whole = assembler.add(1, [(await worker.next('body')).body])?.pieces ?? null;
  assert.ok(joinPieces(whole).equals(body));
});

test('the Python worker streams within its credit', OPTIONS, async (t) => {
  const worker = new WorkerProcess(t, COMMAND);
  await worker.next('hello');
  worker.sendStart('model.bin', { limits: { maxOutputBytes: 1000, streamWindowBytes: 1 } });
  await worker.next('ready');
  worker.callJson(1, { stream: 2 });
  assert.equal((await worker.next('head')).message.status, 200);
  assert.equal((await worker.next('chunk')).body.toString(), '{"n": 0}\n');
  worker.callJson(2, 'a call behind it');
  worker.send({ type: 'credit', id: 1, bytes: 9 });
  assert.equal((await worker.next('chunk')).body.toString(), '{"n": 1}\n');
  assert.equal((await worker.next('end')).message.id, 1);
  assert.equal(await worker.answer(), 'a call behind it');
});

for (const [what, send] of [
  ['waits', (worker: WorkerProcess) => worker.callJson(2, {})],
  [
    'is still arriving',
    (worker: WorkerProcess) =>
      worker.send(
        { type: 'call', calls: [callWith({ id: 2, bodyBytes: 9 })], inlineBytes: [1], batch: 2, last: true },
        Buffer.from('{'),
      ),
  ],
] as const) {
  test(`the Python worker never begins a call that is cancelled while it ${what}`, OPTIONS, async (t) => {
    const worker = await startedWorker(t);
    worker.callJson(1, { sleep: 60 });
    await worker.untilBegun(1);
    send(worker);
    worker.send({ type: 'cancel', id: 2, reason: 'the client left' });
    worker.send({ type: 'cancel', id: 1, reason: 'the client left' });
    const codes = [await worker.next('error'), await worker.next('error')].map(({ message }) => [
      message.id,
      message.code,
    ]);
    assert.deepEqual(codes.sort(), [
      [1, 'SERVE_CANCELLED'],
      [2, 'SERVE_CANCELLED'],
    ]);
    assert.equal(worker.begun.id, 1);
  });
}

test('the Python worker finishes its call when it is asked to stop, and exits with 0', OPTIONS, async (t) => {
  const worker = await startedWorker(t);
  const cue = join(appFolder(t, {}), 'go on');
  worker.callJson(1, { until: cue });
  worker.callJson(2, {});
  await worker.untilBegun(1);
  const arriving = callWith({ id: 3, bodyBytes: 9 });
  worker.send({ type: 'call', calls: [arriving], inlineBytes: [1], batch: 3, last: true }, Buffer.from('{'));
  worker.send({ type: 'stop', graceMs: 1000 });
  worker.send({ type: 'cancel', id: 3, reason: 'the client left' });
  assert.equal((await worker.next('error')).message.id, 3, 'it has read the stop');
  writeFileSync(cue, '');
  assert.deepEqual(await worker.exit, { code: 0, signal: null });
  assert.deepEqual(
    worker.received.map(({ message }) => message.type),
    ['log', 'result'],
  );
});

test('the Python worker dies with its front', OPTIONS, async (t) => {
  const worker = await startedWorker(t);
  worker.callJson(1, { sleep: 60 });
  await worker.untilBegun(1);
  worker.leave();
  assert.deepEqual(await worker.exit, { code: null, signal: 'SIGKILL' });
});

test('a server with Python workers', OPTIONS, async (t) => {
  const server = await serve({
    app: 'model.bin',
    workerCommand: COMMAND,
    port: 0,
    workers: 1,
    logLevel: 'error',
  });
  t.after(() => server.kill());
  await server.ready;

  await t.test('answers JSON', async () => {
    const answer = await call(server.url, '{"prompt":"hi"}');
    assert.deepEqual([answer.status, answer.json()], [200, { prompt: 'hi', app: 'model.bin' }]);
    assert.equal(answer.headers.get('content-type'), 'application/json');
  });

  await t.test('streams more than one window', async () => {
    const answer = await call(server.url, '{"stream":22000}');
    assert.equal(answer.status, 200);
    const lines = answer.text.trimEnd().split('\n');
    assert.equal(lines.length, 22_000);
    assert.equal(lines.at(-1), '{"n": 21999}');
  });

  await t.test('answers 400 to a malformed body and 500 to a failure, and serves on', async () => {
    assert.equal((await call(server.url, '{"a":')).status, 400);
    const failed = await call(server.url, '{"fail":"secret reason"}');
    assert.equal(failed.status, 500);
    assert.doesNotMatch(failed.text, /secret/);
    assert.equal((await call(server.url, '{}')).status, 200);
  });

  await t.test('answers with a status of its own, and with a phrase of its own', async () => {
    const refused = await call(server.url, '{"fail":"No face in this image.","status":422}');
    assert.equal(refused.status, 422);
    assert.match(refused.text, /SERVE_INFERENCE_FAILED.*No face in this image\./);
    const answer = await fetch(server.url, { method: 'POST', body: '{"phrase":"Found a Face"}' });
    assert.deepEqual([answer.status, answer.statusText], [200, 'Found a Face']);
    await answer.body?.cancel();
  });

  await t.test('answers calls that were sent ahead, in one burst', async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, n) => call(server.url, JSON.stringify({ n }))),
    );
    assert.deepEqual(
      answers.map((answer) => answer.json<{ n: number }>().n),
      Array.from({ length: 50 }, (_, n) => n),
    );
  });
});
