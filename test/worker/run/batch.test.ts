/** The calls of a batch under a run loop, which must go on after every outcome. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Response as OwnResponse } from '../../../worker/api/potassium/response.js';
import type { InferenceContext } from '../../../worker/api/types.js';
import { writeHintsTo } from '../../../worker/process/hint-once.js';
import { deferred, nextTurn } from '../../protocol/streams.js';
import { Bench, MAX_OUTPUT_BYTES } from '../loop-bench.js';
import { lostGpu } from '../lost-gpu.js';

const alone = (): never => assert.fail('a call of a batch ran alone');

/** Bodies of `count` calls: 0, 1, 2, ... */
const numbers = (count: number): string[] => Array.from({ length: count }, (_, i) => String(i));

const resultOf = (bench: Bench, id: number): unknown => JSON.parse(String(bench.of('result', id)?.body));

const detailOf = (bench: Bench, id: number): string => {
  const error = bench.of('error', id)?.message;
  return error?.type === 'error' ? `${error.code}: ${error.message} ${error.detail}` : 'no error';
};

test('a batch that is answered later begins with one note, and answers each call with its entry', async () => {
  const handleBatch = (inputs: readonly unknown[]): unknown =>
    nextTurn().then(() => inputs.map((input) => ({ got: input })));
  const bench = new Bench(alone, { handleBatch });
  bench.batch(1, ['"a"', '"b"', '"c"']);
  await bench.ended(3);
  assert.deepEqual(
    bench.story,
    ['begin 3', 'result 1', 'result 2', 'result 3'],
    'the last id stands for all',
  );
  assert.deepEqual(
    [1, 2, 3].map((id) => resultOf(bench, id)),
    [{ got: 'a' }, { got: 'b' }, { got: 'c' }],
  );
});

test('the next call begins when all answers of a batch have left this process', async () => {
  const bench = new Bench((input) => input, { handleBatch: (inputs) => inputs });
  bench.tap.hold();
  bench.batch(1, numbers(2));
  bench.batch(3, numbers(2));
  bench.call(5);
  await nextTurn();
  assert.deepEqual(bench.begun, [2]);
  bench.tap.release();
  await bench.ended(5);
  assert.deepEqual(bench.begun, [2, 4, 5]);
  assert.deepEqual(bench.seen, [5], 'a single call goes to the function of single calls');
});

test('each call of a batch has a context of its own, and prints are the first one’s', async () => {
  let told: unknown;
  const handleBatch = (inputs: readonly unknown[], ctxs: readonly InferenceContext[]): unknown => {
    told = ctxs.map(({ requestId, aborted }: InferenceContext & { aborted?: boolean }) => [
      requestId,
      aborted,
    ]);
    return inputs;
  };
  const bench = new Bench(alone, { handleBatch });
  bench.batch(1, numbers(2));
  await bench.ended(2);
  assert.deepEqual(told, [
    ['r1', false],
    ['r2', false],
  ]);
  assert.deepEqual(bench.printsOf, ['r1']);
});

test('an entry may be a value, an Error, a promise, a Response or a generator: each answers its own call', async () => {
  const entries = [
    { value: 1 },
    new Error('only mine'),
    Promise.resolve('late'),
    Promise.reject(new Error('late and only mine')),
    new Response('made', { status: 201 }),
    (function* () {
      yield 'streamed ';
      yield 'twice';
    })(),
    10n ** 30n,
    new Uint8Array(MAX_OUTPUT_BYTES + 1),
    undefined,
  ];
  const bench = new Bench(alone, { handleBatch: () => entries });
  bench.batch(1, numbers(entries.length));
  for (let id = 1; id <= entries.length; id += 1) await bench.ended(id);
  assert.deepEqual(resultOf(bench, 1), { value: 1 });
  assert.match(detailOf(bench, 2), /SERVE_INFERENCE_FAILED.*Error: only mine\n/);
  assert.equal(resultOf(bench, 3), 'late');
  assert.match(detailOf(bench, 4), /SERVE_INFERENCE_FAILED.*late and only mine\n/);
  const made = bench.of('result', 5);
  assert.deepEqual(
    [made?.message.type === 'result' && made.message.status, String(made?.body)],
    [201, 'made'],
  );
  assert.equal(bench.text(6), 'streamed twice');
  assert.match(detailOf(bench, 7), /SERVE_OUTPUT_INVALID: The output is not JSON: output is a BigInt/);
  assert.match(detailOf(bench, 8), /SERVE_OUTPUT_TOO_LARGE/);
  assert.equal(resultOf(bench, 9), null);
  bench.call(20);
});

test('a malformed body fails its own call before the app runs, and a call left alone runs alone', async () => {
  const gate = deferred<unknown>();
  const bench = new Bench((input) => ({ alone: input }), { handleBatch: () => gate.promise });
  bench.batch(1, ['1', '{"cut', '3']);
  await bench.ended(2);
  assert.deepEqual(bench.story, ['begin 3', 'error 2 SERVE_BAD_BODY'], 'while the others run');
  gate.resolve(['one', 'three']);
  await bench.ended(3);
  assert.deepEqual([resultOf(bench, 1), resultOf(bench, 3)], ['one', 'three']);
  bench.batch(4, ['4', '']);
  bench.batch(6, ['{', '7']);
  bench.batch(8, ['{', '{']);
  bench.call(10);
  await bench.ended(10);
  assert.deepEqual(resultOf(bench, 7), { alone: 7 });
  assert.deepEqual(bench.story.slice(-4), [
    'error 8 SERVE_BAD_BODY',
    'error 9 SERVE_BAD_BODY',
    'begin 10',
    'result 10',
  ]);
});

test('a Response that is thrown for several calls answers none of them', async () => {
  const handleBatch = (): never => {
    throw new Response('whose?', { status: 404 }) as unknown as Error;
  };
  const bench = new Bench(alone, { handleBatch });
  bench.batch(1, numbers(2));
  await bench.ended(2);
  for (const id of [1, 2]) assert.match(detailOf(bench, id), /a Response was thrown for 2 calls at once/);
});

test('a Response of banana-serve that is thrown for several calls answers all of them, if it reports an error', async () => {
  for (const [status, ending] of [
    [422, 'result'],
    [200, 'error'],
  ] as const) {
    const handleBatch = (): never => {
      throw new OwnResponse({ status, json: 'no' }) as unknown as Error;
    };
    const bench = new Bench(alone, { handleBatch });
    bench.batch(1, numbers(2));
    await bench.ended(2);
    for (const id of [1, 2]) {
      const message = bench.of(ending, id)?.message;
      if (message?.type === 'result') assert.equal(message.status, 422);
      else assert.match(detailOf(bench, id), /a Response was thrown for 2 calls at once/);
    }
  }
});

test('only the guilty calls of a repeatable batch fail, and none runs more than ceil(log2 n) + 1 times', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 2, max: 20 }),
      fc.array(fc.nat(19), { maxLength: 3 }),
      async (count, list) => {
        const guilty = new Set(list);
        const runs = new Array<number>(count).fill(0);
        const handle = (input: unknown): unknown => {
          runs[input as number] = (runs[input as number] ?? 0) + 1;
          if (guilty.has(input as number)) throw new Error(`guilty ${String(input)}`);
          return input;
        };
        const handleBatch = (inputs: readonly unknown[]): unknown => {
          const outcomes = inputs.map((input) => () => handle(input));
          let thrown: unknown = null;
          const entries = outcomes.map((outcome) => {
            try {
              return outcome();
            } catch (error) {
              thrown = error;
              return null;
            }
          });
          if (thrown !== null) throw thrown as Error;
          return entries;
        };
        const bench = new Bench(handle, { handleBatch, repeatable: true });
        const hints: string[] = [];
        writeHintsTo((line) => hints.push(line));
        bench.batch(0, numbers(count));
        for (let id = 0; id < count; id += 1) await bench.ended(id);
        for (let id = 0; id < count; id += 1) {
          assert.equal(bench.endings(id), 1);
          if (guilty.has(id)) assert.match(detailOf(bench, id), new RegExp(`Error: guilty ${id}\\n`));
          else assert.equal(resultOf(bench, id), id);
        }
        assert.ok(Math.max(...runs) <= Math.ceil(Math.log2(count)) + 1, `runs: ${runs.join()}`);
        assert.deepEqual(bench.begun, [count - 1], 'one note');
        assert.deepEqual(hints, []);
      },
    ),
    { numRuns: 40 },
  );
});

test('a cancel of one call aborts its signal alone; when the batch runs again, that call does not', async () => {
  const gate = deferred();
  const runs: unknown[][] = [];
  let ctxs: readonly InferenceContext[] = [];
  const handleBatch = async (
    inputs: readonly unknown[],
    given: readonly InferenceContext[],
  ): Promise<unknown> => {
    runs.push([...inputs]);
    if (runs.length > 1) return inputs;
    ctxs = given;
    await gate.promise;
    throw new Error('once');
  };
  const bench = new Bench((input) => input, { handleBatch, repeatable: true });
  bench.batch(0, numbers(4));
  await nextTurn();
  bench.loop.cancel(1, 'the client left');
  assert.deepEqual(
    ctxs.map(({ signal }) => signal.aborted),
    [false, true, false, false],
  );
  gate.resolve();
  await bench.ended(3);
  assert.deepEqual(runs, [
    [0, 1, 2, 3],
    [2, 3],
  ]);
  assert.deepEqual(bench.seen, [0]);
  assert.match(detailOf(bench, 1), /SERVE_CANCELLED/);
});

test('a batch without waiting callers runs no further half', async () => {
  const gate = deferred();
  let runs = 0;
  const handleBatch = async (): Promise<never> => {
    runs += 1;
    await gate.promise;
    throw new Error('boom');
  };
  const bench = new Bench(alone, { handleBatch, repeatable: true });
  bench.batch(0, numbers(4));
  await nextTurn();
  for (const id of [0, 1, 2, 3]) bench.loop.cancel(id, 'the run timeout is over');
  gate.resolve();
  await bench.ended(3);
  assert.equal(runs, 1);
});

test('a stop aborts every signal of the running batch, which finishes, and no other call begins', async () => {
  const gate = deferred();
  let ctxs: readonly InferenceContext[] = [];
  const handleBatch = async (
    inputs: readonly unknown[],
    given: readonly InferenceContext[],
  ): Promise<unknown> => {
    ctxs = given;
    await gate.promise;
    return inputs;
  };
  const bench = new Bench(alone, { handleBatch });
  bench.batch(1, numbers(2));
  bench.batch(3, numbers(2));
  await nextTurn();
  bench.loop.retire('the server is stopping', null);
  assert.deepEqual(
    ctxs.map(({ signal }) => String(signal.reason)),
    Array(2).fill('AbortError: the server is stopping'),
  );
  assert.equal(bench.idleCalls, 0);
  gate.resolve();
  await bench.ended(2);
  assert.equal(bench.idleCalls, 1);
  assert.deepEqual(bench.story, ['begin 2', 'result 1', 'result 2']);
});

test('a lost GPU counts, whatever else becomes of its batch', async () => {
  const handleBatch = (): unknown => [1, lostGpu(), new Error('of this call alone')];
  const bench = new Bench(alone, { handleBatch });
  bench.batch(1, numbers(3));
  await bench.ended(3);
  assert.match(bench.doubts.join(), /^this process can no longer use its GPU: /);
});
