/** One copy of a result for all who read it, and few reads of the store at a time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SharedResults } from '../../../supervisor/jobs/shared-results.js';

const BYTES = 100;

/** Results over a store whose reads end when they are told to. */
function bench() {
  const reads: { id: string; end: (outcome: Buffer | null | Error) => void }[] = [];
  let bytes = 0;
  const results = new SharedResults(
    (id) =>
      new Promise((resolve, reject) => {
        reads.push({
          id,
          end: (outcome) => (outcome instanceof Error ? reject(outcome) : resolve(outcome)),
        });
      }),
    (more) => (bytes += more),
  );
  return { results, reads, ids: () => reads.map(({ id }) => id), bytes: () => bytes };
}

test('150 readers share one copy, which counts once and until the last of them has left', async () => {
  const { results, reads, ids, bytes } = bench();
  const held = Array.from({ length: 150 }, () => results.hold('a', BYTES));
  assert.deepEqual([ids(), bytes()], [['a'], BYTES]);
  const body = Buffer.from('out');
  reads[0]?.end(body);
  for (const one of held) assert.equal(await one.body, body);
  assert.equal(await results.hold('a', BYTES).body, body, 'while anybody reads, another one shares it');
  for (const one of [...held, ...held]) one.release();
  assert.equal(bytes(), BYTES, 'one still reads');
});

test('after the last has left it is read again', async () => {
  const { results, reads, ids, bytes } = bench();
  const first = results.hold('a', BYTES);
  reads[0]?.end(Buffer.from('out'));
  await first.body;
  first.release();
  assert.equal(bytes(), 0);
  const next = results.hold('a', BYTES);
  assert.deepEqual(ids(), ['a', 'a']);
  first.release();
  next.release();
  assert.equal(bytes(), BYTES, 'it is being read');
  reads[1]?.end(null);
  assert.equal(await next.body, null);
  assert.equal(bytes(), 0);
});

test('two are read at a time; one whose readers leave before its turn is not read', async () => {
  const { results, reads, ids, bytes } = bench();
  const held = ['a', 'b', 'c', 'd'].map((id) => results.hold(id, BYTES));
  assert.deepEqual([ids(), bytes()], [['a', 'b'], 2 * BYTES]);
  held[2]?.release();
  assert.equal(await held[2]?.body, null);
  reads[1]?.end(Buffer.from('b'));
  await held[1]?.body;
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([ids(), bytes()], [['a', 'b', 'd'], 3 * BYTES]);
});

test('a failure of the store is that of all who wait, and of nobody who comes later', async () => {
  const { results, reads, ids, bytes } = bench();
  const held = ['a', 'b', 'c'].map((id) => results.hold(id, BYTES));
  const failure = new Error('the store is away');
  reads[0]?.end(failure);
  for (const i of [0, 2]) await assert.rejects(held[i]!.body, failure);
  const again = results.hold('a', BYTES);
  for (const one of held) one.release();
  reads[1]?.end(Buffer.from('b'));
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([ids(), bytes()], [['a', 'b', 'a'], BYTES]);
  reads[2]?.end(Buffer.from('a'));
  assert.equal((await again.body)?.toString(), 'a');
});
