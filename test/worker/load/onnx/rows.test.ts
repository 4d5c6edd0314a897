import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tensor } from '../../../../protocol/values/tensor.js';
import { arrangeRuns, haveRows, joinRows, rowsOf, splitRows } from '../../../../worker/load/onnx/rows.js';

/** A tensor whose elements count up from `from`. */
function counting(shape: readonly number[], from = 0): Tensor {
  const count = shape.reduce((product, size) => product * size, 1);
  return new Tensor(
    'INT32',
    shape,
    Int32Array.from({ length: count }, (_, i) => from + i),
  );
}

/** A call with one input of this shape. */
function callOf(name: string, ...shape: number[]): { name: string; tensors: Record<string, Tensor> } {
  return { name, tensors: { x: counting(shape) } };
}

test('the rows of a call are the first dimension of all its inputs; there are none to join if they differ', () => {
  assert.equal(rowsOf({ a: counting([3, 2]), b: counting([3]) }), 3);
  assert.equal(rowsOf({ a: counting([3, 2]), b: counting([2]) }), null);
  assert.equal(rowsOf({ a: counting([0, 2]) }), null);
  assert.equal(rowsOf({ a: counting([]) }), null);
  assert.equal(rowsOf({}), null);
});

const ARRANGED: readonly (readonly [what: string, calls: ReturnType<typeof callOf>[], runs: string[][]])[] = [
  [
    'calls of one shape, up to the limit',
    [1, 2, 3, 4, 5].map((n) => callOf(String(n), 1, 2)),
    [['1', '2', '3', '4'], ['5']],
  ],
  ['rows, not calls', [callOf('a', 3, 2), callOf('b', 2, 2), callOf('c', 2, 2)], [['a'], ['b', 'c']]],
  [
    'each shape in a run of its own',
    [callOf('a', 1, 2), callOf('b', 1, 3), callOf('c', 1, 2)],
    [['a', 'c'], ['b']],
  ],
  [
    'a call of more rows alone',
    [callOf('a', 1, 2), callOf('big', 9, 2), callOf('c', 1, 2)],
    [['a'], ['big'], ['c']],
  ],
  [
    'a call without rows alone',
    [callOf('a', 1, 2), callOf('empty', 0, 2), callOf('c', 1, 2)],
    [['a', 'c'], ['empty']],
  ],
];

for (const [what, calls, runs] of ARRANGED)
  test(`runs have ${what}`, () => {
    const arranged = arrangeRuns(calls, 4).map((run) => run.map(({ name }) => name));
    assert.deepEqual(arranged, runs);
  });

test('no run has more rows than the limit, and every call is in one', () => {
  const calls = Array.from({ length: 200 }, (_, i) => callOf(String(i), 1 + (i % 5), 1 + (i % 3)));
  const runs = arrangeRuns(calls, 8);
  for (const run of runs) {
    const rows = run.reduce((sum, { tensors }) => sum + (rowsOf(tensors) as number), 0);
    assert.ok(rows <= 8, `${rows} rows`);
    assert.equal(new Set(run.map(({ tensors }) => tensors['x']?.shape[1])).size, 1);
  }
  assert.deepEqual(runs.flat().length, 200);
});

test('rows are joined in order, and outputs split the same way', () => {
  const calls = [counting([2, 2], 0), counting([1, 2], 4), counting([3, 2], 6)];
  const joined = joinRows(calls.map((x) => ({ x })))['x'] as Tensor;
  assert.deepEqual(joined, counting([6, 2]));
  assert.deepEqual(
    splitRows({ y: joined }, [2, 1, 3]),
    calls.map((y) => ({ y })),
  );
});

test('texts are joined and split as rows are', () => {
  const texts = [['a', 'b'], ['c']].map((data) => ({ x: new Tensor('BYTES', [data.length], data) }));
  const joined = joinRows(texts);
  assert.deepEqual(joined, { x: new Tensor('BYTES', [3], ['a', 'b', 'c']) });
  assert.deepEqual(splitRows(joined, [2, 1]), texts);
});

test('a row may be a single element, or have none', () => {
  assert.deepEqual(splitRows({ y: counting([2]) }, [1, 1]), [{ y: counting([1]) }, { y: counting([1], 1) }]);
  assert.deepEqual(splitRows({ y: counting([2, 0]) }, [1, 1]), [
    { y: counting([1, 0]) },
    { y: counting([1, 0]) },
  ]);
});

test('one call is not copied', () => {
  const tensors = { x: counting([2, 2]) };
  assert.equal(joinRows([tensors]), tensors);
});

test('outputs have rows if the first dimension of each is their number', () => {
  assert.equal(haveRows({ a: counting([3, 2]), b: counting([3]) }, 3), true);
  assert.equal(haveRows({ a: counting([3, 2]), b: counting([1]) }, 3), false);
  assert.equal(haveRows({ a: counting([]) }, 1), false);
});
