import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { startHeartbeat } from '../../../../supervisor/http/websocket/liveness.js';

function setUp(t: TestContext) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const story: string[] = [];
  const ws = { isPaused: false, ping: () => story.push('ping'), terminate: () => story.push('terminate') };
  return { heartbeat: startHeartbeat(ws), ws, story, pass: () => t.mock.timers.tick(30_000) };
}

test('a client is pinged every 30 s, and cut if nothing arrives before the next ping', (t) => {
  const { heartbeat, story, pass } = setUp(t);
  pass();
  heartbeat.onBytes();
  pass();
  assert.deepEqual(story, ['ping', 'ping']);
  pass();
  assert.deepEqual(story, ['ping', 'ping', 'terminate']);
});

test('a client is not pinged while its connection is paused, as its pong would not be read', (t) => {
  const { ws, story, pass } = setUp(t);
  pass();
  ws.isPaused = true;
  pass();
  pass();
  assert.deepEqual(story, ['ping']);
});

test('a heartbeat that was stopped sends no more pings', (t) => {
  const { heartbeat, story, pass } = setUp(t);
  heartbeat.stop();
  pass();
  assert.deepEqual(story, []);
});
