import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import type { WebSocket } from 'ws';
import { startClosing } from '../../../../supervisor/http/websocket/websocket-call.js';

function setUp(t: TestContext) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const story: string[] = [];
  const ws = { bufferedAmount: 0, resume: () => story.push('read'), terminate: () => story.push('cut') };
  const socket = new EventEmitter();
  socket.on('data', () => story.push('frames'));
  const ending = startClosing(ws as unknown as WebSocket, socket as unknown as Socket);
  return { ending, ws, socket, story, pass: () => t.mock.timers.tick(2000) };
}

test('after the close frame the client is still read, and has 2 s to answer it', (t) => {
  const { story, pass } = setUp(t);
  assert.deepEqual(story, ['read']);
  pass();
  assert.deepEqual(story, ['read', 'cut']);
});

test('a client that is still reading has more than 2 s; one that reads nothing has not', (t) => {
  const { ws, story, pass } = setUp(t);
  ws.bufferedAmount = 200;
  pass();
  ws.bufferedAmount = 100;
  pass();
  assert.deepEqual(story, ['read']);
  pass();
  assert.deepEqual(story, ['read', 'cut']);
});

test('messages that a client sends after the close frame are discarded', (t) => {
  const { ending, socket, story } = setUp(t);
  ending.onBytes(64 * 1024);
  socket.emit('data');
  assert.deepEqual(story, ['read', 'frames']);
  ending.onBytes(1);
  socket.emit('data');
  assert.deepEqual(story, ['read', 'frames']);
});

test('a closing handshake that was stopped cuts no connection', (t) => {
  const { ending, story, pass } = setUp(t);
  ending.stop();
  pass();
  assert.deepEqual(story, ['read']);
});
