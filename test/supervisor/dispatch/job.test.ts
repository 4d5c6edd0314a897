import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ServeError } from '../../../protocol/errors.js';
import type { Job } from '../../../supervisor/dispatch/job.js';
import { OK, newJob } from './jobs.js';

const ENDINGS: Readonly<Record<string, (job: Job) => void>> = {
  reply: (job) => job.reply(OK, [], 0, 1),
  end: (job) => job.end(1),
  fail: (job) => job.fail(new ServeError('SERVE_INTERNAL')),
};

test('a job settles exactly once, with the first of its endings, and nothing follows', () => {
  const steps = fc.array(fc.constantFrom('begin', 'head', 'chunk', ...Object.keys(ENDINGS)), {
    maxLength: 12,
  });
  fc.assert(
    fc.property(steps, (names) => {
      const outcomes: string[] = [];
      const job = newJob('1', { onSettled: (outcome) => outcomes.push(outcome) });
      for (const name of names) {
        if (name === 'begin') job.begin(5);
        else if (name === 'head') job.head(OK);
        else if (name === 'chunk') job.chunk([], () => {});
        else ENDINGS[name]?.(job);
      }
      const first = names.find((name) => name in ENDINGS);
      const expected = { reply: ['ok'], end: ['end'], fail: ['SERVE_INTERNAL'] }[first ?? ''] ?? [];
      assert.deepEqual(outcomes, expected);
      assert.equal(job.settled, first !== undefined);
    }),
  );
});

test('a settled job does not begin any more', () => {
  const job = newJob('1');
  job.fail(new ServeError('SERVE_CANCELLED'));
  job.begin(5);
  assert.deepEqual([job.settled, job.checkBegun()], [true, false]);
});

test('checkBegun looks up in its worker whether a job has begun', () => {
  const asks = [
    (job: Job) => assert.equal(job.checkBegun(), true),
    (job: Job) => assert.equal(job.queueMs(500), 80),
    (job: Job) => {
      job.fail(new ServeError('SERVE_CANCELLED'));
      assert.equal(job.queueMs(500), 80, 'its owner is told how long it waited');
    },
  ];
  for (const ask of asks) {
    const job = newJob('1', { acceptedAtMs: 100 });
    job.sendTo({
      index: 0,
      learnBegun: () => job.begin(180),
      abandon: () => {},
      signal: () => {},
      sendData: () => {},
    });
    ask(job);
  }
});

test('time in line ends when the call begins', () => {
  const job = newJob('1', { acceptedAtMs: 100 });
  assert.equal(job.queueMs(150), 50);
  job.begin(180);
  assert.equal(job.queueMs(500), 80);
});
