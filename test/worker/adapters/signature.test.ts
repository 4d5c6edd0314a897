import assert from 'node:assert/strict';
import { test } from 'node:test';
import { signatureOf, taskOf } from '../../../worker/adapters/exports.js';

const X = { name: 'x', datatype: 'FP32', shape: [-1, 2] };

test('an app may have a signature', () => {
  const signature = { inputs: [X, { ...X, name: 'y', shape: [] }], outputs: [] };
  assert.deepEqual(signatureOf({ signature }), { signature });
  assert.deepEqual(signatureOf({}), {});
});

for (const [signature, problem] of [
  [null, /such as \{ inputs: .*, not null$/],
  [[X], /, not a list$/],
  [{ inputs: [X] }, /, but `outputs` is undefined$/],
  [{ inputs: [X, X], outputs: [] }, /: `inputs` has "x" twice$/],
  [{ inputs: [null], outputs: [] }, /: inputs\[0\]\.name must be text, not undefined$/],
  [{ inputs: [], outputs: [X, { ...X, name: '' }] }, /: outputs\[1\]\.name must be text, not ""$/],
  [
    { inputs: [{ ...X, datatype: 'float' }], outputs: [] },
    /: inputs\[0\]\.datatype is "float"; there are BOOL, /,
  ],
  [
    { inputs: [{ ...X, shape: [-2] }], outputs: [] },
    /shape must be a list of sizes, with -1 for a free one, not \[-2\]$/,
  ],
  [{ inputs: [{ ...X, shape: ['n'] }], outputs: [] }, /not \["n"\]$/],
  [{ inputs: [{ ...X, shape: 2 }], outputs: [] }, /not 2$/],
  [{ inputs: [{ ...X, shape: Array(33).fill(1) }], outputs: [] }, /not a list$/],
] as const)
  test(`the signature ${JSON.stringify(signature).slice(0, 80)} is a TypeError that says why`, () => {
    assert.throws(
      () => signatureOf({ signature }),
      (error) =>
        error instanceof TypeError &&
        error.message.startsWith('export `signature`') &&
        problem.test(error.message),
    );
  });

test('an app may have a task that this server knows, and take tokens with it', () => {
  assert.deepEqual(taskOf({}), {});
  assert.deepEqual(taskOf({ task: 'rerank' }), { task: 'rerank' });
  assert.deepEqual(taskOf({ task: 'embedding', tokenInput: true }), { task: 'embedding', tokenInput: true });
});

for (const task of ['embeddings', null, ['embedding']])
  test(`the task ${JSON.stringify(task)} is a TypeError that lists those there are`, () =>
    assert.throws(() => taskOf({ task }), /^TypeError: export `task` is .*; there are embedding, rerank$/));
