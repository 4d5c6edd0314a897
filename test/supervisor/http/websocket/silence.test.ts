import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { SilenceLimit } from '../../../../supervisor/http/websocket/liveness.js';
import { startLimit } from '../../../../supervisor/machine/limit-timer.js';

function setUp(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let nowMs = 1000;
  t.mock.method(performance, 'now', () => nowMs);
  let ended = 0;
  const silence = new SilenceLimit(() => (ended += 1));
  const pass = (ms: number): void => {
    nowMs += ms;
    t.mock.timers.tick(ms);
  };
  return { silence, pass, ended: () => ended };
}

test('silence is measured from when the app begins to wait, and restarts with each message to the client', (t) => {
  const { silence, pass, ended } = setUp(t);
  silence.begin(100);
  assert.equal(silence.isRunning, true);
  pass(99);
  silence.break();
  pass(99);
  assert.equal(ended(), 0);
  pass(1);
  assert.equal(ended(), 1);
});

test('a second wait replaces the first, and a message from the client ends it', (t) => {
  const { silence, pass, ended } = setUp(t);
  silence.begin(100);
  silence.begin(100);
  silence.end();
  assert.equal(silence.isRunning, false);
  silence.break();
  pass(1000);
  assert.equal(ended(), 0);
});

test('a message that arrives in parts is not silence, within the limit of a message', (t) => {
  const { silence, pass, ended } = setUp(t);
  silence.begin(60_000);
  for (let minutes = 0; minutes < 30; minutes += 0.5) {
    pass(30_000);
    silence.onPart();
  }
  assert.equal(ended(), 0);
  for (let i = 0; i < 5; i += 1) {
    pass(30_000);
    silence.onPart();
  }
  assert.equal(ended(), 1);
});

test('a message that came while this process stood still is read before silence is told', async () => {
  let ended = 0;
  const silence = new SilenceLimit(() => (ended += 1));
  setTimeout(() => setImmediate(() => silence.end()), 1); // the event loop reads behind its timers
  silence.begin(5);
  const later = new Promise<void>((resolve) => startLimit(5, resolve));
  const untilMs = performance.now() + 100;
  while (performance.now() < untilMs);
  await later;
  assert.equal(ended, 0);
});
