/** Calls in a dialect's own format, whose writer waits and knows what its reader found. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Signature } from '../../../protocol/values/tensor.js';
import { ITEMS } from '../../../worker/api/route-options.js';
import { Reply } from '../../../worker/formats/reply.js';
import { LOADED_FORMATS } from '../../../worker/formats/index.js';
import { readInput } from '../../../worker/formats/read-input.js';
import { callWith } from '../calls.js';
import { FORMAT } from '../formats/tiny.js';
import { Bench } from '../loop-bench.js';
import { serveError } from '../refusals.js';

before(() => void LOADED_FORMATS.set('tiny', FORMAT));
after(() => void LOADED_FORMATS.delete('tiny'));

const TINY = { format: 'tiny', answer: 'tiny', dialectParams: 'model=m' };

/** Content type, headers and body of a call's result. */
function resultOf(bench: Bench, id: number): unknown[] {
  const { message, body } = bench.of('result', id) ?? assert.fail(bench.story.join('; '));
  assert.ok(message.type === 'result');
  return [message.contentType, message.headers, body.toString()];
}

const headersOf = (kind: string, id: string): string => `X-Kind\n${kind}\nX-Id\n${id}\nX-Model\nm`;

test('40 concurrent calls whose answers are written late get their own bytes', async () => {
  const numbers = Array.from({ length: 40 }, (_, i) => i);
  const bench = new Bench(() => assert.fail('ran alone'), { handleBatch: (inputs) => inputs });
  bench.batch(
    1,
    numbers.map((i) => `id${i} a\n{"a":"value ${i}","b":0}`),
    TINY,
  );
  for (const i of numbers) {
    await bench.ended(i + 1);
    const expected = ['text/x-tiny', headersOf('value', `id${i}`), `"value ${i}"\n`];
    assert.deepEqual(resultOf(bench, i + 1), expected);
  }
});

test('a body in another format is read by that one, and the answer written by the dialect', async () => {
  const bench = new Bench((input) => input);
  bench.call(1, { a: 1 }, { ...TINY, format: 'auto' });
  await bench.ended(1);
  assert.deepEqual(resultOf(bench, 1), ['text/x-tiny', headersOf('value', '-'), '']);
});

test('a service’s result reaches the writer as it is', async () => {
  const head = { status: 200, contentType: '', headers: '', phrase: '' };
  const bench = new Bench((value) => new Reply(head, { kind: 'result', value }));
  bench.call(1, { a: 1 }, { ...TINY, format: 'auto' });
  await bench.ended(1);
  assert.deepEqual(resultOf(bench, 1), ['text/x-tiny', headersOf('result', '-'), '']);
});

test('a stream that the writer refuses is closed', async () => {
  let isClosed = false;
  const iterator = {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () => Promise.resolve({ done: true, value: undefined }),
    return() {
      isClosed = true;
      return Promise.resolve({ done: true, value: undefined });
    },
  };
  const bench = new Bench(() => iterator);
  bench.call(1, {}, { ...TINY, format: 'auto' });
  await bench.ended(1);
  assert.deepEqual(bench.story, ['begin 1', 'error 1 SERVE_HTTP_ERROR']);
  assert.ok(isClosed);
});

test("the request's parameters are the app's, and its inputs are checked against the signature", async () => {
  const signature: Signature = { inputs: [{ name: 'x', datatype: 'INT32', shape: [-1] }], outputs: [] };
  const bench = new Bench((_input, { params }) => [`${String(params['seed'])} ${String(params['mode'])}`], {
    signature,
  });
  const v2 = { format: 'open-inference', answer: 'open-inference' };
  const x = { name: 'x', datatype: 'INT32', shape: [1], data: [1] };
  bench.call(1, { inputs: [x], parameters: { seed: 5, mode: 'fast' } }, v2);
  await bench.ended(1);
  assert.match(String(resultOf(bench, 1).at(-1)), /"data":\["5 fast"\]/);
  bench.call(2, { inputs: [{ ...x, datatype: 'INT64' }] }, v2);
  await bench.ended(2);
  assert.equal(bench.story.at(-1), 'error 2 SERVE_BAD_BODY');
});

test('an answer in a format that only reads, or that nothing has, is refused before the app runs', async () => {
  for (const answer of ['json', 'none']) {
    const bench = new Bench(() => assert.fail('the app ran'));
    bench.call(1, {}, { answer });
    await bench.ended(1);
    assert.deepEqual(bench.story, ['begin 1', 'error 1 SERVE_BAD_BODY'], answer);
  }
});

for (const [format, words] of [
  ['tiny', /^A custom service cannot be called in the format "tiny"\.$/],
  [
    'open-inference',
    /^This model is a custom service .* takes no tensors; call it at \/predictions\/\{model_name\}\.$/,
  ],
] as const)
  test(`a custom service cannot be called in the format ${format}, which states no type for its items`, async () => {
    const read = (): unknown => readInput(callWith({ format }), Buffer.from('1\n{}'), ITEMS);
    await assert.rejects(Promise.resolve().then(read), serveError('SERVE_BAD_BODY', words));
  });
