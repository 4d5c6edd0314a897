import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MAX_FRAGMENT_BYTES } from '../../../protocol/wire/limits.js';
import { deferred, nextTurn } from '../../protocol/streams.js';
import { Bench, WINDOW_BYTES, frozenClock } from '../loop-bench.js';
import { lostGpu } from '../lost-gpu.js';

test('the run loop reports that a call came, and that all calls are answered', async () => {
  const last = deferred<number>();
  const bench = new Bench((input) => (input === 3 ? last.promise : input));
  bench.call(1);
  bench.call(2);
  bench.call(3);
  bench.call(4);
  assert.deepEqual(bench.comings, ['call', 'idle', 'call', 'idle', 'call', 'call']);
  last.resolve(0);
  await bench.ended(4);
  assert.deepEqual(bench.comings.slice(6), ['idle']);
});

test('a call is noted as begun before the app sees it', () => {
  const bench: Bench = new Bench(() => bench.story.join());
  bench.call(1);
  assert.equal(bench.of('result', 1)?.body.toString(), '"begin 1"');
});

test('a call begins only once the answer of the last one has left this process', async () => {
  const bench = new Bench((input) => input);
  bench.tap.hold();
  bench.call(1);
  bench.call(2);
  await nextTurn();
  assert.deepEqual(bench.story, ['begin 1', 'result 1'], 'written, not taken');
  bench.tap.release();
  await bench.ended(2);
  assert.deepEqual(bench.story, ['begin 1', 'result 1', 'begin 2', 'result 2']);
});

test('after a call that blocked the thread, a pending cancel is read before the next call begins', async (t) => {
  const clock = frozenClock(t);
  const gate = deferred();
  const bench = new Bench(async () => {
    await gate.promise;
    clock.advance(2);
  });
  bench.call(1);
  bench.call(2);
  gate.resolve();
  // Still in the same turn of the event loop, in which no cancel was read.
  for (let tick = 0; tick < 100 && bench.endings(1) === 0; tick += 1) await Promise.resolve();
  assert.equal(bench.endings(1), 1);
  bench.loop.cancel(2, 'the client left');
  await nextTurn();
  await nextTurn();
  assert.deepEqual(bench.seen, [1]);
  assert.deepEqual(bench.story, ['begin 1', 'result 1', 'error 2 SERVE_CANCELLED']);
});

test('a call that is cancelled while it runs gets the reason, and still has exactly one ending', async () => {
  const bench = new Bench(
    (_input, ctx) =>
      new Promise((_resolve, reject) => {
        ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason as Error));
      }),
  );
  bench.call(1);
  bench.loop.cancel(1, 'the client left');
  await bench.ended(1);
  assert.deepEqual(bench.story, ['begin 1', 'error 1 SERVE_INFERENCE_FAILED']);
  const error = bench.of('error', 1)?.message;
  assert.match(error?.type === 'error' ? error.detail : '', /AbortError: the client left/);
});

test('the next call begins only after the last fragment of a large result is out of this process', async () => {
  const large = new Uint8Array(4 * MAX_FRAGMENT_BYTES);
  const gate = deferred();
  const bench = new Bench((input) => (input === 1 ? gate.promise.then(() => large) : 2));
  bench.call(1);
  bench.call(2);
  bench.tap.hold();
  gate.resolve();
  while (bench.tap.writes.length < 1) await nextTurn();
  for (let fragment = 0; fragment < 2; fragment += 1) {
    assert.deepEqual(bench.seen, [1]);
    bench.tap.step();
    await nextTurn();
  }
  assert.deepEqual(bench.seen, [1]);
  bench.tap.release();
  await bench.ended(2);
  assert.deepEqual(bench.story, ['begin 1', 'result 1', 'body 1', 'body 1', 'body 1', 'begin 2', 'result 2']);
});

const OUTCOMES = {
  value: () => 1,
  late: () => nextTurn().then(() => 2),
  throws: () => {
    throw new Error('boom');
  },
  rejects: () => nextTurn().then(() => Promise.reject(new Error('boom'))),
  stream: () => ['a', 'b'].values(),
  slowStream: async function* () {
    yield 'x'.repeat(2 * WINDOW_BYTES);
    await nextTurn();
    yield 'y';
  },
  large: () => new Uint8Array(3 * MAX_FRAGMENT_BYTES),
  unencodable: () => 2n ** 64n,
  response: () => new Response('r'),
} as const;

type Outcome = keyof typeof OUTCOMES;
const outcome = fc.constantFrom(...(Object.keys(OUTCOMES) as Outcome[]));
const pause = { cancelAfter: fc.option(fc.nat(3)), pauseTurns: fc.nat(2) };

/** A batch function whose inputs determine its entries; it throws if an input asks for that. */
function handleBatch(inputs: readonly unknown[]): unknown[] {
  if (inputs.includes('throws')) throw new Error('boom');
  return inputs.map((input) => OUTCOMES[input as Outcome]());
}

/** Grants credit until these calls have ended, and checks that each did so once, in the order of their begins. */
async function assertEndings(bench: Bench, ids: Iterable<number>): Promise<void> {
  for (const id of ids) {
    for (let turn = 0; turn < 200 && bench.endings(id) === 0; turn += 1) {
      for (const other of ids) bench.loop.running(other)?.grantCredit(1e9);
      await nextTurn();
    }
  }
  const { begun } = bench;
  assert.deepEqual(
    begun,
    begun.toSorted((a, b) => a - b),
  );
  for (const id of ids) assert.equal(bench.endings(id), 1, bench.story.join('; '));
}

test('each call has one ending and begins in its order, whatever it does and whenever it is cancelled', async () => {
  const step = fc.record({ outcome, ...pause });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
      const bench = new Bench((input) => OUTCOMES[input as Outcome]());
      for (const [i, { outcome: input, cancelAfter, pauseTurns }] of steps.entries()) {
        bench.call(i, input);
        if (cancelAfter !== null) bench.loop.cancel(Math.max(0, i - cancelAfter), 'the client left');
        for (let turn = 0; turn < pauseTurns; turn += 1) await nextTurn();
      }
      await assertEndings(bench, [...steps.keys()]);
    }),
    { numRuns: 60 },
  );
});

test('so it is for the calls of batches, repeatable or not', async () => {
  const body = fc.oneof(
    { weight: 6, arbitrary: outcome.map((input) => JSON.stringify(input)) },
    fc.constant('{'),
  );
  const step = fc.record({ bodies: fc.array(body, { minLength: 1, maxLength: 5 }), ...pause });
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      async (steps, repeatable) => {
        const bench = new Bench((input) => OUTCOMES[input as Outcome](), { handleBatch, repeatable });
        let next = 0;
        for (const { bodies, cancelAfter, pauseTurns } of steps) {
          bench.batch(next, bodies);
          next += bodies.length;
          if (cancelAfter !== null) bench.loop.cancel(Math.max(0, next - 1 - cancelAfter), 'the client left');
          for (let turn = 0; turn < pauseTurns; turn += 1) await nextTurn();
        }
        await assertEndings(bench, [...Array(next).keys()]);
        assert.ok(bench.begun.length <= steps.length, 'one note for each batch');
      },
    ),
    { numRuns: 60 },
  );
});

test('the run loop reports the loss of the GPU when the call that lost it has ended', async () => {
  const bench = new Bench((input) => (input === 1 ? null : Promise.reject(lostGpu())));
  bench.call(1, 1);
  await bench.ended(1);
  assert.deepEqual(bench.doubts, []);
  bench.call(2, 2);
  await bench.ended(2);
  assert.deepEqual(bench.story, ['begin 1', 'result 1', 'begin 2', 'error 2 SERVE_INFERENCE_FAILED']);
  assert.match(bench.doubts.join(), /^this process can no longer use its GPU: CUDA failure 700[^,]*$/);
});
