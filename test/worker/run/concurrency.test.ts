import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deferred, nextTurn } from '../../protocol/streams.js';
import { Bench } from '../loop-bench.js';

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

test('a call too many, or a batch, breaks the protocol', () => {
  const { bench } = setUp();
  for (const id of [0, 1, 2]) bench.call(id);
  assert.throws(() => bench.call(3), { code: 'SERVE_PROTOCOL' });
  assert.throws(() => setUp().bench.batch(1, ['1', '2']), { code: 'SERVE_PROTOCOL' });
});
