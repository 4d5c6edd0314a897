import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Job } from '../../../supervisor/dispatch/job.js';
import { JobQueue } from '../../../supervisor/dispatch/queue.js';
import { newJob } from './jobs.js';

/** The model of the queue: a plain array. */
class Model {
  jobs: Job[] = [];
  made = 0;

  next(bytes: number): Job {
    this.made += 1;
    return newJob(`job-${this.made}`, { bytes });
  }
}

type Command = fc.Command<Model, JobQueue<Job>>;

function check(model: Model, queue: JobQueue<Job>): void {
  assert.deepEqual([...queue].map(idOf), model.jobs.map(idOf));
  assert.equal(queue.length, model.jobs.length);
  assert.equal(
    queue.bytes,
    model.jobs.reduce((sum, job) => sum + job.bodyBytes, 0),
  );
  assert.equal(queue.peek(), model.jobs[0] ?? null);
}

function idOf(job: Job): string {
  return job.call.requestId;
}

function command(
  name: string,
  run: (model: Model, queue: JobQueue<Job>) => void,
  needsJobs = false,
): Command {
  return {
    check: (model) => !needsJobs || model.jobs.length > 0,
    run: (model, queue) => {
      run(model, queue);
      check(model, queue);
    },
    toString: () => name,
  };
}

const commands = [
  fc.nat(1000).map((bytes) =>
    command(`push(${bytes})`, (model, queue) => {
      const job = model.next(bytes);
      model.jobs.push(job);
      queue.push(job);
    }),
  ),
  fc.nat(1000).map((bytes) =>
    command(`unshift(${bytes})`, (model, queue) => {
      const job = model.next(bytes);
      model.jobs.unshift(job);
      queue.unshift(job);
    }),
  ),
  fc.constant(
    command('shift', (model, queue) => {
      assert.equal(queue.shift(), model.jobs.shift() ?? null);
    }),
  ),
  fc.nat(100).map((at) =>
    command(
      `remove(${at})`,
      (model, queue) => {
        const [job] = model.jobs.splice(at % model.jobs.length, 1);
        queue.remove(job as Job);
      },
      true,
    ),
  ),
  fc.nat(6).map((step) =>
    command(`remove every ${step + 1}th while walking`, (model, queue) => {
      let i = 0;
      const removed = new Set<Job>();
      for (const job of queue) {
        if (i % (step + 1) === 0) {
          queue.remove(job);
          removed.add(job);
        }
        i += 1;
      }
      assert.equal(i, model.jobs.length, 'each was visited once');
      model.jobs = model.jobs.filter((job) => !removed.has(job));
    }),
  ),
];

test('JobQueue behaves as an array would, whatever is pushed, put back, taken and removed', () => {
  fc.assert(
    fc.property(fc.commands(commands, { maxCommands: 60 }), (program) => {
      fc.modelRun(() => ({ model: new Model(), real: new JobQueue<Job>() }), program);
    }),
    { numRuns: 300 },
  );
});

test('a job that was removed can be put back', () => {
  const queue = new JobQueue<Job>();
  const [first, second] = [newJob('1'), newJob('2')];
  queue.push(first);
  queue.push(second);
  const taken = queue.shift() as Job;
  queue.unshift(taken);
  assert.deepEqual([...queue].map(idOf), ['1', '2']);
});
