/** The policy against the rules of others on one load, and the picture of it in docs/scaling.md. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { holdsSection } from '../../helpers/doc-page.js';
import { betterThan, compare, MAX_WORKERS, SEED } from './comparison.js';
import { scaledLoad } from './loads.js';
import { scalingPicture, spikes } from './scaling-picture.js';

const comparison = spikes();

test('no target of Knative or Ray Serve has fewer worker-seconds and a shorter p99 on spikes', () => {
  assert.deepEqual(betterThan(comparison.ours, comparison), []);
});

test('nor with one call an hour', () => {
  const bounds = { min: 0, max: MAX_WORKERS, startMs: 5000 };
  const rare = compare(scaledLoad('a call an hour', SEED), bounds, [0.7, 2]);
  assert.deepEqual(betterThan(rare.ours, rare), []);
  assert.equal(rare.ours.outcome.mostWorkers, 1);
});

holdsSection('scaling.md', 'picture', () => `\n\`\`\`text\n${scalingPicture(comparison)}\`\`\`\n\n`);
