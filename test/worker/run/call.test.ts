/** One call under a run loop, which must go on after every outcome. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Response as OwnResponse } from '../../../worker/api/potassium/response.js';
import type { InferenceContext } from '../../../worker/api/types.js';
import { writeHintsTo } from '../../../worker/process/hint-once.js';
import { nextTurn, type Received } from '../../protocol/streams.js';
import { Bench, WINDOW_BYTES } from '../loop-bench.js';

/** Values that a careless app may reject with. */
async function rejectWithText(): Promise<never> {
  await Promise.resolve();
  throw 'boom' as unknown as Error;
}

async function rejectWithObject(): Promise<never> {
  await Promise.resolve();
  throw { boom: 1 } as unknown as Error;
}

for (const [what, handle, detail] of [
  [
    'throws',
    () => {
      throw new Error('boom');
    },
    /^Error: boom\n/,
  ],
  ['rejects', () => Promise.reject(new Error('boom')), /^Error: boom\n/],
  [
    'throws undefined',
    () => {
      throw undefined as unknown as Error;
    },
    /^thrown value: undefined$/,
  ],
  ['returns an Error', () => new Error('boom'), /^Error: boom\n/],
  ['throws an object', () => rejectWithObject(), /^thrown value: \{ boom: 1 \}$/],
  ['rejects with text', () => nextTurn().then(() => rejectWithText()), /^boom$/],
] as const) {
  test(`an app that ${what} fails that call with its text in the log only, and the next call runs`, async () => {
    const bench = new Bench((input) => (input === 1 ? handle() : 'fine'));
    bench.call(1);
    bench.call(2);
    await bench.ended(2);
    assert.deepEqual(bench.story, ['begin 1', 'error 1 SERVE_INFERENCE_FAILED', 'begin 2', 'result 2']);
    const error = bench.of('error', 1)?.message;
    assert.ok(error?.type === 'error');
    assert.equal(error.message, 'The model failed on this call.');
    assert.match(error.detail, detail);
  });
}

test('an output that is Response.error() fails the call with SERVE_OUTPUT_INVALID', async () => {
  const bench = new Bench(() => Response.error());
  bench.call(1);
  await bench.ended(1);
  assert.deepEqual(bench.story, ['begin 1', 'error 1 SERVE_OUTPUT_INVALID']);
  const error = bench.of('error', 1)?.message;
  assert.match(error?.type === 'error' ? error.message : '', /has no status/);
});

test('texts of an error are cut so that they always fit into a frame head', async () => {
  const bench = new Bench(() => ({ ['😀'.repeat(400_000)]: 2n ** 64n }));
  bench.call(1);
  await bench.ended(1);
  assert.deepEqual(bench.story, ['begin 1', 'error 1 SERVE_OUTPUT_INVALID']);
});

test('a thenable that calls back twice, or throws after it did, is answered once', async () => {
  const twice = {
    then(resolve: (value: unknown) => void) {
      resolve('first');
      resolve('second');
      throw new Error('and this');
    },
  };
  const bench = new Bench((input) => (input === 1 ? twice : 'fine'));
  bench.call(1);
  bench.call(2);
  await bench.ended(2);
  assert.deepEqual(bench.story, ['begin 1', 'result 1', 'begin 2', 'result 2']);
  assert.equal(bench.of('result', 1)?.body.toString(), '"first"');
});

test('a Response keeps its status, type and headers', async () => {
  const bench = new Bench(() => new Response('made', { status: 201, headers: { 'x-model': 'v2' } }));
  bench.call(1);
  await bench.ended(1);
  const { message, body } = bench.of('result', 1) as Received;
  assert.ok(message.type === 'result');
  assert.deepEqual(
    [message.status, message.contentType, message.headers],
    [201, 'text/plain;charset=UTF-8', 'x-model\nv2'],
  );
  assert.equal(body.toString(), 'made');
});

test('a Response that streams with an empty content type is sent without one, not with that of its first item', async () => {
  const bench = new Bench(() => {
    const start = (controller: ReadableStreamDefaultController<Buffer>): void => {
      for (const text of ['mi', 'ne']) controller.enqueue(Buffer.from(text));
      controller.close();
    };
    return new Response(new ReadableStream({ start }), { headers: { 'content-type': '' } });
  });
  bench.call(1);
  await bench.ended(1);
  const head = bench.of('head', 1)?.message;
  assert.equal(head?.type === 'head' ? head.contentType : null, '');
});

test('a Response that is thrown is the answer; thrown by its own body it is one too, and a used one fails', async () => {
  const used = new Response('used');
  await used.text();
  const answers = [
    new Response('first', { status: 404 }),
    new Response(new ReadableStream({ pull: () => throwIt(new Response('inner', { status: 405 })) })),
    used,
  ];
  const bench = new Bench((input) => Promise.resolve().then(() => throwIt(answers[(input as number) - 1])));
  for (const id of [1, 2, 3]) bench.call(id);
  await bench.ended(3);
  const endings = ['result 1', 'result 2', 'error 3 SERVE_INFERENCE_FAILED'];
  assert.deepEqual(
    bench.story,
    endings.flatMap((ending, i) => [`begin ${i + 1}`, ending]),
  );
  const statuses = bench.messages.map((message) => (message.type === 'result' ? message.status : null));
  assert.deepEqual(
    statuses.filter((status) => status !== null),
    [404, 405],
  );
});

test('the Response of banana-serve answers from any kind of app, returned or thrown', async () => {
  const made = (status: number): OwnResponse =>
    new OwnResponse({ status, json: { made: true }, headers: { 'X-Model': 'v2' } });
  const bench = new Bench((input) => (input === 1 ? made(201) : throwIt(made(422))));
  bench.call(1);
  bench.call(2);
  await bench.ended(2);
  for (const [id, status] of [
    [1, 201],
    [2, 422],
  ] as const) {
    const { message, body } = bench.of('result', id) as Received;
    assert.ok(message.type === 'result');
    const { contentType, headers } = message;
    assert.deepEqual([message.status, contentType, headers], [status, 'application/json', 'X-Model\nv2']);
    assert.equal(body.toString(), '{"made":true}');
  }
});

test('a forgotten return is named once; null is meant', async () => {
  const lines: string[] = [];
  writeHintsTo((line) => lines.push(line));
  const bench = new Bench((input) => (input === 3 ? null : undefined));
  for (const id of [3, 1, 2]) bench.call(id);
  await bench.ended(2);
  assert.equal(lines.length, 1);
  assert.match(lines[0] as string, /returned nothing for a call of \/, so its client gets null/);
});

function throwIt(thrown: unknown): never {
  throw thrown as Error;
}

test('a chunk is the bytes at the time of the yield, though the app uses its buffer again', async () => {
  const buffer = Buffer.alloc(40 * WINDOW_BYTES);
  function* reusing(_input: unknown, ctx: InferenceContext): Generator<Uint8Array> {
    bench.tap.hold();
    ctx.log.info('this write is never taken, so the chunks wait behind it');
    for (const letter of 'abc') yield buffer.fill(letter);
  }
  const bench = new Bench(reusing);
  bench.call(1);
  bench.loop.running(1)?.grantCredit(1e9);
  await nextTurn();
  bench.loop.running(1)?.grantCredit(1e9);
  await nextTurn();
  bench.tap.release();
  await bench.ended(1);
  const expected = [...'abc'].map((letter) => letter.repeat(buffer.length)).join('');
  assert.ok(bench.text(1) === expected);
});

test('prints are attributed to the request, also those of a generator', async () => {
  const bench = new Bench((input) => (input === 1 ? 'value' : ['a'].values()));
  bench.call(1);
  bench.call(2);
  await bench.ended(2);
  assert.deepEqual(bench.printsOf, ['r1', 'r2', 'r2']);
});
