import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LINES_PER_S, LineLimit, ProbeAnswers } from '../../../supervisor/observe/line-limit.js';

test('a second has so many lines, then one that counts the rest; a second without a rest has none', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const rests: number[] = [];
  const limit = new LineLimit((count) => rests.push(count));
  const allowed = (asked: number): number =>
    Array.from({ length: asked }, () => limit.allows()).filter(Boolean).length;
  assert.equal(allowed(5000), LINES_PER_S);
  t.mock.timers.tick(999);
  assert.deepEqual(rests, []);
  t.mock.timers.tick(1);
  assert.deepEqual(rests, [5000 - LINES_PER_S]);
  assert.equal(allowed(7), 7);
  t.mock.timers.tick(1000);
  assert.equal(rests.length, 1);
  allowed(LINES_PER_S + 3);
  limit.close();
  assert.deepEqual(rests.slice(1), [3]);
});

test('an answer of a probe is compared with the one before on its path', () => {
  const answers = new ProbeAnswers();
  const seen = [200, 200, 503, 503, 200].map((status) => answers.take('/readyz', status));
  assert.deepEqual(seen, ['first', 'same', 'changed', 'same', 'changed']);
  assert.equal(answers.take('/livez', 200), 'first');
});

test('paths that nothing serves take no memory without bound', () => {
  const answers = new ProbeAnswers();
  for (let i = 0; i < 1000; i += 1) answers.take(`/readyz/${i}`, 404);
  assert.equal(answers.take('/readyz/999', 404), 'same');
  answers.take('/readyz/one-more', 404);
  assert.equal(answers.take('/readyz/0', 404), 'first', 'the others are forgotten');
});
