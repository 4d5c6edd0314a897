/** The peak of a model's load over the last minute. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LoadPeak } from '../../../supervisor/models/demand.js';

test('the most of the last minute counts, and is forgotten after it', () => {
  const peak = new LoadPeak();
  peak.note(3, 500_000);
  peak.note(7, 500_900);
  peak.note(2, 530_000);
  assert.equal(peak.most(530_000), 7);
  assert.equal(peak.most(559_999), 7);
  assert.equal(peak.most(560_000), 2);
  assert.equal(peak.most(700_000), 0);
  peak.note(1, 700_000);
  assert.equal(peak.most(700_001), 1);
});
