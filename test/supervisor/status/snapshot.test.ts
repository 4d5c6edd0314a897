/** The parts of `/status` that depend on who asks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jobsStatus } from '../../../supervisor/status/snapshot.js';

test('the place of the store of jobs, and why it fails, are for clients that may read the words of the app', () => {
  const away = { store: { name: 'redis (10.0.0.1:6379)' }, problem: 'Redis at 10.0.0.1:6379: no connection' };
  assert.deepEqual(jobsStatus(away, true), { store: away.store.name, problem: away.problem });
  assert.deepEqual(jobsStatus(away, false), { store: 'redis', problem: 'unavailable' });
  assert.deepEqual(jobsStatus({ ...away, problem: null }, false), { store: 'redis', problem: null });
});
