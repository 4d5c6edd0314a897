import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { startHeartbeat } from '../../../../supervisor/http/websocket/liveness.js';

function setUp(t: TestContext) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const story: string[] = [];
  const ws = { isPaused: false, ping: () => story.push('ping'), terminate: () => story.push('terminate') };
  /** `read`: what is read from the socket between the timer and the next turn. */
  const pass = async (read: () => void = () => {}): Promise<void> => {
    t.mock.timers.tick(30_000);
    read();
    await nextTurn();
  };
  return { heartbeat: startHeartbeat(ws), ws, story, pass };
}

test('a client is pinged every 30 s, and cut if nothing arrives before the next ping', async (t) => {
  const { heartbeat, story, pass } = setUp(t);
  await pass();
  heartbeat.onBytes();
  await pass();
  assert.deepEqual(story, ['ping', 'ping']);
  await pass();
  assert.deepEqual(story, ['ping', 'ping', 'terminate']);
});

test('a client is not pinged while its connection is paused, as its pong would not be read', async (t) => {
  const { ws, story, pass } = setUp(t);
  await pass();
  ws.isPaused = true;
  await pass();
  await pass();
  assert.deepEqual(story, ['ping']);
});

test('a heartbeat that was stopped sends no more pings', async (t) => {
  const { heartbeat, story, pass } = setUp(t);
  heartbeat.stop();
  await pass();
  assert.deepEqual(story, []);
});

test('a client whose pong is read right after the timer is not cut: the process may have been suspended', async (t) => {
  const { heartbeat, story, pass } = setUp(t);
  await pass();
  await pass(heartbeat.onBytes);
  assert.deepEqual(story, ['ping', 'ping']);
});
