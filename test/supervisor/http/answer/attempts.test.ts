import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Attempts } from '../../../../supervisor/http/answer/access-log.js';

test('each id is counted separately', () => {
  const attempts = new Attempts();
  assert.deepEqual(
    ['a', 'b', 'a', 'a', 'b', '__proto__'].map((id) => attempts.count(id)),
    [1, 1, 2, 3, 2, 1],
  );
});

test('when there are more ids than can be remembered, the least recently used one is forgotten', () => {
  const attempts = new Attempts(2);
  const counted = ['a', 'b', 'a', 'c', 'a', 'b'].map((id) => attempts.count(id));
  assert.deepEqual(counted, [1, 1, 2, 1, 3, 1], 'b made room for c, though a came first');
});

test('at most 10,000 ids are remembered', () => {
  const attempts = new Attempts();
  for (let i = 0; i < 10_000; i += 1) attempts.count(`id-${i}`);
  assert.equal(attempts.count('id-0'), 2);
  attempts.count('one more');
  assert.equal(attempts.count('id-1'), 1);
  assert.equal(attempts.count('id-9999'), 2);
});
