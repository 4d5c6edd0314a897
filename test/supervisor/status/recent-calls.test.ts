import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Model } from '../../../supervisor/models/model.js';
import { RecentCalls } from '../../../supervisor/status/answer-counts.js';

test('calls count for ten minutes, separately for each model', () => {
  let minute = 100;
  const recent = new RecentCalls(() => minute * 60_000 + 1);
  const [one, other, none] = [{}, {}, {}] as [Model, Model, Model];
  for (let i = 0; i < 15; i += 1) {
    recent.count(one, i % 5 === 0);
    recent.count(one, false);
    minute += 1;
  }
  recent.count(other, true);
  // The current minute, which has no calls, is one of the ten: the calls of the last nine of the fifteen minutes count.
  assert.deepEqual(recent.of(one), { requests: 18, rejected: 1 });
  assert.deepEqual(recent.of(other), { requests: 1, rejected: 1 });
  minute += 10;
  assert.deepEqual(recent.of(one), { requests: 0, rejected: 0 });
  assert.deepEqual(recent.of(none), { requests: 0, rejected: 0 });
});
