/** Jobs as viewers of the page see them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../../../../protocol/errors.js';
import type { KeptJob } from '../../../../supervisor/jobs/kept-jobs.js';
import { MAX_MESSAGE_CHARS, describeJobs } from '../../../../supervisor/status/live/live-jobs.js';

const failed = {
  id: 'secret',
  createdAt: new Date(),
  endedAt: new Date(),
  runMs: 1,
  error: new ServeError('SERVE_HTTP_ERROR', 'x'.repeat(64 * 1024)),
  lookUpState: () => 'failed',
} as unknown as KeptJob;

for (const [showsWords, length] of [
  [true, MAX_MESSAGE_CHARS],
  [false, 0],
] as const)
  test(`a long message of an app is sent with at most ${length} characters`, () => {
    const { newest } = describeJobs([failed], showsWords);
    assert.equal(newest[0]?.error?.message.length, length);
  });

test('the id, with which everybody can read the result, is only for viewers that may read what the app writes', () => {
  const ids = [true, false].map((showsWords) => describeJobs([failed], showsWords).newest[0]?.id);
  assert.deepEqual(ids, ['secret', '']);
});
