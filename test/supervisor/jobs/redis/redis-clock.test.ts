/** The time of Redis, on the monotonic clock of this process. */
import assert from 'node:assert/strict';
import { mock, test, type TestContext } from 'node:test';
import { RedisClock } from '../../../../supervisor/jobs/redis/redis-clock.js';

function clockAt(t: TestContext, nowMs: number): { clock: RedisClock; warnings: string[] } {
  mock.timers.enable({ apis: ['Date'], now: nowMs });
  t.after(() => mock.timers.reset());
  const warnings: string[] = [];
  return { clock: new RedisClock((text) => warnings.push(text)), warnings };
}

for (const [offMs, warning] of [
  [900, null],
  [-900, null],
  [1500, /^the clock of this machine is 1500 ms ahead of that of Redis/],
  [-90_000, /^the clock of this machine is 90000 ms behind that of Redis/],
] as const)
  test(`a machine whose clock is ${offMs} ms off ${warning ? 'warns' : 'says nothing'}`, (t) => {
    const redisMs = 1_000_000_000;
    const { clock, warnings } = clockAt(t, redisMs + offMs);
    const at = performance.now();
    clock.set(redisMs, at, at);
    if (warning === null) assert.deepEqual(warnings, []);
    else {
      assert.equal(warnings.length, 1);
      // The monotonic clock goes on meanwhile.
      assert.match(
        warnings[0]?.replace(/\d+ ms/, (ms) => `${Math.round(parseInt(ms) / 100) * 100} ms`) ?? '',
        warning,
      );
    }
    assert.ok(Math.abs(clock.now() - redisMs) < 1000, 'jobs have the time of Redis');
  });

test('it warns once until the clock is right again, and never for the time that a look has taken', (t) => {
  const { clock, warnings } = clockAt(t, 1_005_000);
  const look = (redisMs: number, tookMs = 0): void => {
    const at = performance.now();
    clock.set(redisMs, at - tookMs, at);
  };
  look(1_000_000);
  look(1_000_000);
  assert.equal(warnings.length, 1);
  look(1_005_000);
  look(1_000_000);
  assert.equal(warnings.length, 2);
  look(1_005_000);
  look(1_003_500, 2000); // the answer may have been on its way for all of that
  assert.equal(warnings.length, 2);
});
