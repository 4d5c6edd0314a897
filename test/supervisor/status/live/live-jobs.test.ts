/** The newest jobs, as the page shows them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../../../../protocol/errors.js';
import { keptError, type JobRecord } from '../../../../supervisor/jobs/job-record.js';
import { begun, settled } from '../../../../supervisor/jobs/job-rules.js';
import { MAX_MESSAGE_CHARS, describeJob } from '../../../../supervisor/status/live/live-models.js';
import { newStoredJob } from '../../jobs/stored-jobs.js';

function newRecord(id: string): JobRecord {
  return newStoredJob({ id, createdAt: 1000 }).record;
}

function failed(record: JobRecord, message = 'no weights in /srv'): JobRecord {
  const error = keptError(new ServeError('SERVE_INFERENCE_FAILED', message));
  return settled(begun(record, '1', 1100), { error, runMs: 1.234, queueMs: 1 }, 1200, false);
}

test("without the app's words jobs have neither ids, texts nor messages", () => {
  const running = { ...begun(newRecord('b'), '1', 1100), progress: { fraction: 0.5, text: 'half of /srv' } };
  const records = [failed(newRecord('a')), running, newRecord('c')];
  const newest = records.map((record) => describeJob(record, true));
  const [first] = newest;
  assert.deepEqual(
    [first?.state, first?.createdAt, first?.endedAt, first?.runMs, first?.error?.message],
    ['failed', 1000, 1200, 1.23, 'no weights in /srv'],
  );
  assert.deepEqual(
    newest.map(({ id, progress }) => [id, progress?.text]),
    [
      ['a', undefined],
      ['b', 'half of /srv'],
      ['c', undefined],
    ],
  );
  const hidden = records.map((record) => describeJob(record, false));
  assert.deepEqual(hidden[1]?.progress, { fraction: 0.5, text: '' });
  assert.doesNotMatch(JSON.stringify(hidden), /srv|"[abc]"/);
});

test(`a long message of an app is sent with at most ${MAX_MESSAGE_CHARS} characters`, () => {
  const { error } = describeJob(failed(newRecord('a'), 'x'.repeat(64 * 1024)), true);
  assert.equal(error?.message.length, MAX_MESSAGE_CHARS);
});
