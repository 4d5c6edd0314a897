import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LINES_PER_S, LineLimit, probeAnswers } from '../../../supervisor/observe/line-limit.js';

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
  const compare = probeAnswers();
  const seen = [200, 200, 503, 503, 200].map((status) => compare('/readyz', status));
  assert.deepEqual(seen, ['first', 'same', 'changed', 'same', 'changed']);
  assert.equal(compare('/livez', 200), 'first');
});

test('paths that nothing serves take no memory without bound', () => {
  const compare = probeAnswers();
  for (let i = 0; i < 1000; i += 1) compare(`/readyz/${i}`, 404);
  assert.equal(compare('/readyz/999', 404), 'same');
  compare('/readyz/one-more', 404);
  assert.equal(compare('/readyz/0', 404), 'first', 'the others are forgotten');
});
