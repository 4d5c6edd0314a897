import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attemptCounter } from '../../../../supervisor/http/answer/access-log.js';

test('each id is counted separately', () => {
  const count = attemptCounter();
  assert.deepEqual(
    ['a', 'b', 'a', 'a', 'b', '__proto__'].map((id) => count(id)),
    [1, 1, 2, 3, 2, 1],
  );
});

test('when there are more ids than can be remembered, the least recently used one is forgotten', () => {
  const count = attemptCounter(2);
  const counted = ['a', 'b', 'a', 'c', 'a', 'b'].map((id) => count(id));
  assert.deepEqual(counted, [1, 1, 2, 1, 3, 1], 'b made room for c, though a came first');
});

test('at most 10,000 ids are remembered', () => {
  const count = attemptCounter();
  for (let i = 0; i < 10_000; i += 1) count(`id-${i}`);
  assert.equal(count('id-0'), 2);
  count('one more');
  assert.equal(count('id-1'), 1);
  assert.equal(count('id-9999'), 2);
});
