import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Job } from '../../../supervisor/dispatch/job.js';
import { Lines } from '../../../supervisor/dispatch/lines.js';
import { newJob } from './jobs.js';

function linesOf(...routes: string[]): { lines: Lines<Job>; jobs: Job[] } {
  const lines = new Lines<Job>({ count() {} });
  const jobs = routes.map((route, i) => newJob(`${i}`, { route, bytes: 10 }));
  jobs.forEach((job, i) => lines.push(job, i));
  return { lines, jobs };
}

test('the oldest of all lines is the one that came first, whatever its route', () => {
  const { lines, jobs } = linesOf('/a', '/b', '/a');
  for (const job of jobs) {
    assert.equal(lines.findOldest(), job);
    lines.remove(job);
  }
  assert.deepEqual([lines.findOldest(), lines.length, lines.bytes], [null, 0, 0]);
});

test('a job that comes back is before all that came after it, in its own line and over all lines', () => {
  const { lines, jobs } = linesOf('/a', '/b', '/a');
  const [first] = jobs as [Job];
  lines.remove(first);
  lines.putBack(first);
  assert.equal(lines.findOldest(), first);
  assert.equal(lines.all[0]?.peek(), first);
  assert.equal(lines.length, 3);
});

test('empty lines are dropped when the routes change', () => {
  const { lines, jobs } = linesOf('/a', '/b');
  lines.remove(jobs[0] as Job);
  lines.forgetEmpty();
  assert.equal(lines.all.length, 1);
  lines.push(newJob('new', { route: '/a' }), 5);
  assert.equal(lines.all.length, 2);
});
