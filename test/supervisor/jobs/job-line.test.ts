import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { JobLine, type Ordered } from '../../../supervisor/jobs/job-line.js';

test('a line has its jobs in order, whatever comes, comes back, leaves or is taken', () => {
  const step = fc.oneof(
    fc.constant('new' as const),
    fc.constant('take' as const),
    fc.record({ remove: fc.nat(30) }),
    fc.record({ comeBack: fc.nat(30) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const line = new JobLine<Ordered>();
      const made: Ordered[] = [];
      let here: Ordered[] = [];
      for (const one of steps) {
        if (one === 'new') {
          const job = { order: made.length };
          made.push(job);
          here.push(job);
          line.add(job);
        } else if (one === 'take') {
          assert.equal(line.shift(), here.shift());
        } else if ('remove' in one) {
          const job = made[one.remove];
          if (job === undefined) continue;
          assert.equal(line.remove(job), here.includes(job));
          here = here.filter((other) => other !== job);
        } else {
          const job = made[one.comeBack];
          if (job === undefined || here.includes(job)) continue;
          here = [...here, job].sort((a, b) => a.order - b.order);
          line.add(job);
        }
        assert.deepEqual([line.length, line.peek()], [here.length, here[0]]);
      }
    }),
  );
});

test('a long line that is taken from at the front holds none of the jobs that have left', () => {
  const line = new JobLine<Ordered>();
  for (let order = 0; order < 5000; order += 1) line.add({ order });
  for (let order = 0; order < 4999; order += 1) assert.equal(line.shift()?.order, order);
  line.add({ order: 1 });
  assert.deepEqual(
    [line.length, line.shift()?.order, line.shift()?.order, line.shift()],
    [2, 1, 4999, undefined],
  );
});
