import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deferred, nextTurn } from '../../protocol/streams.js';
import { callWith } from '../calls.js';
import { Bench } from '../loop-bench.js';
import type { WaitingCall } from '../../../worker/run/running-call.js';

/** A loop for three calls; the input of each is the number of the gate that it waits for. */
function setUp() {
  const gates = Array.from({ length: 6 }, () => deferred<unknown>());
  const requestIds: string[] = [];
  const bench: Bench = new Bench(
    async (input) => {
      const value = await gates[input as number]?.promise;
      requestIds.push(bench.loop.runningRequestId);
      if (value instanceof Error) throw value;
      return value;
    },
    { concurrency: 3 },
  );
  return { bench, gates, requestIds };
}

const waiting = (id: number): WaitingCall => {
  const body = Buffer.from(String(id));
  return { call: callWith({ id, bodyBytes: body.length }), pieces: [body] };
};

test('calls begin at once, in the order they came, and are answered in any order', async () => {
  const { bench, gates, requestIds } = setUp();
  for (const id of [0, 1, 2]) bench.call(id);
  assert.deepEqual(
    [bench.begun, bench.seen],
    [
      [0, 1, 2],
      [0, 1, 2],
    ],
  );
  for (const id of [1, 2, 0]) {
    gates[id]?.resolve('done');
    await bench.ended(id);
  }
  assert.deepEqual(bench.story.slice(3), ['result 1', 'result 2', 'result 0']);
  assert.deepEqual(requestIds, ['r1', 'r2', 'r0'], 'each knows its own call');
  assert.equal(bench.loop.runningRequestId, '', 'outside of calls there is none');
});

test('a call begins although earlier answers have not left this process, which other streams may fill for ever', async () => {
  const { bench, gates } = setUp();
  bench.call(0);
  bench.tap.hold();
  gates[0]?.resolve('done');
  await nextTurn();
  bench.call(1);
  assert.deepEqual(bench.begun, [0, 1]);
});

test('a cancel reaches its own call alone; a call that has not begun never does', async () => {
  const { bench, gates } = setUp();
  bench.loop.accept([waiting(1)]);
  bench.loop.accept([waiting(2)]);
  bench.loop.cancel(1, 'the client left');
  bench.loop.pump();
  gates[2]?.resolve('done');
  await bench.ended(2);
  assert.deepEqual(bench.begun, [2]);
  assert.ok(bench.story.includes('error 1 SERVE_CANCELLED'));
});

test('once it has said that it retires, calls that have not begun get no ending: the front has taken them back', () => {
  const { bench } = setUp();
  bench.call(0);
  bench.loop.retire(null, 'the app is in doubt');
  bench.loop.accept([waiting(1)]);
  bench.loop.cancel(1, 'the client left');
  bench.loop.sendCancelled(2);
  assert.equal(bench.story.at(-1), 'retiring');
});

test('a call too many, or a batch, breaks the protocol', () => {
  const { bench } = setUp();
  for (const id of [0, 1, 2]) bench.call(id);
  assert.throws(() => bench.call(3), { code: 'SERVE_PROTOCOL' });
  assert.throws(() => setUp().bench.batch(1, ['1', '2']), { code: 'SERVE_PROTOCOL' });
});

test('a loop that retires begins no more, says so if its app is in doubt, and is idle when the last call has ended', async () => {
  const { bench, gates } = setUp();
  bench.call(0);
  bench.call(1);
  bench.loop.retire(null, 'the app is in doubt');
  bench.call(2);
  assert.deepEqual([bench.begun, bench.story.at(-1)], [[0, 1], 'retiring']);
  gates[1]?.resolve('done');
  await bench.ended(1);
  assert.equal(bench.idleCalls, 0);
  gates[0]?.resolve('done');
  await bench.ended(0);
  assert.equal(bench.idleCalls, 1);
});

test('an app without memory in three calls in a row is in doubt while other calls run', async () => {
  const { bench, gates } = setUp();
  bench.call(0);
  for (const id of [1, 2, 3]) {
    bench.call(id);
    gates[id]?.resolve(Object.assign(new Error('no memory'), { code: 'ENOMEM' }));
    await bench.ended(id);
  }
  assert.deepEqual(bench.doubts, ['the app ran out of memory in 3 calls in a row']);
});
