/** The limits of each kind of store, as docs/jobs.md has them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keepLimits } from '../../../supervisor/jobs/open-job-store.js';
import type { JobsPlace } from '../../../supervisor/options/value-forms.js';
import { OPTIONS } from '../../../supervisor/options/table.js';

const HOUR_MS = 3_600_000;
const MIB = 1024 ** 2;

const REDIS = { in: 'redis', url: 'redis://localhost:6379' } as unknown as JobsPlace;

for (const [place, retentionMs, maxBytes] of [
  [{ in: 'memory' }, HOUR_MS / 4, 256 * MIB],
  [{ in: 'local', folder: '.banana-jobs' }, 24 * HOUR_MS, 1024 * MIB],
  [REDIS, 24 * HOUR_MS, 1024 * MIB],
] as const)
  test(`${place.in}: jobs are kept as long, and as many, as the documents say`, () => {
    const { jobRetention, jobBytes } = OPTIONS;
    assert.deepEqual([jobRetention.default, jobBytes.default], [null, null], 'the store decides');
    assert.deepEqual(keepLimits({ place, retentionMs: null, maxBytes: null }), { retentionMs, maxBytes });
    assert.deepEqual(keepLimits({ place, retentionMs: 1, maxBytes: 2 }), { retentionMs: 1, maxBytes: 2 });
  });
