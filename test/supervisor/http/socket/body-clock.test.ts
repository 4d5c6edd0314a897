/** Bodies with a clock that the test advances. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import {
  noteBytes,
  unwatchBody,
  watchBody,
  type WatchedBody,
} from '../../../../supervisor/http/socket/receive-body.js';

interface Clock {
  /** Advances the clock while the process runs. */
  pass(ms: number): void;
  /** Advances the clock as if the process had been suspended. */
  stand(ms: number): void;
  /** Stops watching the body; the clock stops with the last one. */
  end(body: WatchedBody): void;
  watch(pauseLimitMs: number): { body: WatchedBody; tooSlow: () => boolean };
}

function setUp(t: TestContext): Clock {
  t.mock.timers.enable({ apis: ['setInterval'] });
  let nowMs = 1000;
  t.mock.method(performance, 'now', () => nowMs);
  return {
    pass: (ms) => {
      for (let passed = 0; passed < ms; passed += 100) {
        nowMs += 100;
        t.mock.timers.tick(100);
      }
    },
    stand: (ms) => {
      nowMs += ms;
      t.mock.timers.tick(1000);
    },
    end: (body) => {
      unwatchBody(body);
      t.mock.timers.tick(1000);
    },
    watch: (pauseLimitMs) => {
      let tooSlow = false;
      const body = watchBody(pauseLimitMs, () => (tooSlow = true));
      return { body, tooSlow: () => tooSlow };
    },
  };
}

test('a body is too slow once a pause is longer than the limit', (t) => {
  const clock = setUp(t);
  const { body, tooSlow } = clock.watch(10_000);
  clock.pass(9000);
  noteBytes(body, 1);
  clock.pass(9900);
  assert.equal(tooSlow(), false);
  clock.pass(1100);
  assert.equal(tooSlow(), true);
  clock.end(body);
});

test('after 30 s a body must average at least 1 kB/s', (t) => {
  const clock = setUp(t);
  const drips = clock.watch(10_000);
  const flows = clock.watch(10_000);
  for (let s = 0; s < 30; s += 5) {
    noteBytes(drips.body, 4900);
    noteBytes(flows.body, 5300);
    clock.pass(5000);
  }
  assert.deepEqual([drips.tooSlow(), flows.tooSlow()], [false, false], 'a client may need a while to begin');
  clock.pass(1500);
  assert.deepEqual([drips.tooSlow(), flows.tooSlow()], [true, false]);
  clock.end(drips.body);
  clock.end(flows.body);
});

test('time in which the process was suspended does not count as a pause', (t) => {
  const clock = setUp(t);
  const { body, tooSlow } = clock.watch(10_000);
  clock.pass(5000);
  clock.stand(3_600_000);
  assert.equal(tooSlow(), false);
  noteBytes(body, 1);
  clock.pass(9900);
  assert.equal(tooSlow(), false);
  clock.pass(1200);
  assert.equal(tooSlow(), true);
  clock.end(body);
});

test('the clock runs while there are bodies, and starts again for later ones', (t) => {
  const clock = setUp(t);
  const first = clock.watch(1000);
  clock.end(first.body);
  clock.pass(2000);
  assert.equal(first.tooSlow(), false, 'it is whole');
  const second = clock.watch(1000);
  clock.pass(1200);
  assert.equal(second.tooSlow(), true);
  clock.end(second.body);
});
