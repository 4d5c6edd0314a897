/** The check of a server's clock at its looks at Redis, with a Redis and a clock of the test. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JobSteps } from '../../../../supervisor/jobs/redis/job-steps.js';
import { Upkeep } from '../../../../supervisor/jobs/redis/upkeep.js';

/** `offMs`: how far Redis's clock is ahead of this one; `toMs` and `backMs`: how long request and answer are under way. */
const ROWS = [
  ['that is right', 0, 0, 0, []],
  ['that is right, if the request is late', 0, 2500, 0, []],
  ['that is right, if the answer is late', 0, 0, 2500, []],
  ['that is ahead', -1001, 0, 0, ['1001 ms ahead of']],
  ['that is behind', 1001, 0, 0, ['1001 ms behind']],
  ['that is as far ahead as may be', -1000, 0, 0, []],
  ['that is as far behind as may be', 1000, 0, 0, []],
] as const;

for (const [what, offMs, toMs, backMs, sides] of ROWS)
  test(`a server says what is certain of a clock ${what}`, async (t) => {
    let nowMs = 1000;
    t.mock.method(performance, 'now', () => nowMs);
    const warnings: string[] = [];
    const look = (): Promise<unknown> => {
      nowMs += toMs;
      const redisMs = performance.timeOrigin + nowMs + offMs;
      nowMs += backMs;
      const time = [String(Math.floor(redisMs / 1000)), String((redisMs % 1000) * 1000)];
      return Promise.resolve([[], [], '', time]);
    };
    const parts = {
      link: { run: look, reset: () => {} },
      limits: { retentionMs: 60_000 },
      held: { renew: () => Promise.resolve() },
      lockMs: 60_000,
      counts: { note: () => {}, places: () => [] },
      tell: (_what: string, text: string) => warnings.push(text),
    };
    const upkeep = new Upkeep({ parts } as unknown as JobSteps, () => {});
    t.after(() => upkeep.close());
    upkeep.open();
    await upkeep.idle();
    assert.deepEqual(
      warnings,
      sides.map((side) => `the clock of this machine is ${side} that of Redis: all servers need one time`),
    );
  });
