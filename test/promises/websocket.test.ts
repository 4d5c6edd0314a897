/** WebSocket routes: messages in their order, the end of a conversation, and clients that leave. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { post } from '../helpers/potassium.js';
import { fixture } from '../helpers/server.js';
import { shareServer } from '../helpers/shared-server.js';
import { openSocket } from '../helpers/web-socket.js';

describe('a WebSocket', { timeout: 240_000 }, () => {
  const shared = shareServer(fixture('websockets.mjs'), { expectedRestarts: 1 });

  test('text, bytes, empty messages and a megabyte come back as they went, in their order', async (t) => {
    const client = await openSocket(t, shared.server, '/echo');
    const sent = ['hello', '', Buffer.from([0, 255]), Buffer.alloc(0), 'é漢🍌'.repeat(100_000)];
    for (const message of sent) client.socket.send(message);
    assert.deepEqual(await client.heard(sent.length), sent);
    client.socket.close();
    assert.deepEqual(await client.closed, [1005, '']);
  });

  test('a message may have 20,000 fragments', async (t) => {
    const client = await openSocket(t, shared.server, '/echo');
    for (let i = 1; i < 20_000; i += 1) client.socket.send('f', { fin: false });
    client.socket.send('f');
    const [echo] = await client.heard(1);
    assert.equal(String(echo), 'f'.repeat(20_000));
    client.socket.close();
    await client.closed;
  });

  test('the function gets the id, the headers and the query of the handshake', async (t) => {
    const headers = { 'x-custom': 'c', 'x-request-id': 'mine' };
    const client = await openSocket(t, shared.server, '/facts?q=1', headers);
    const [facts] = await client.heard(1);
    assert.deepEqual(JSON.parse(String(facts)), { id: 'mine', custom: 'c', query: '1', json: null });
    assert.equal((await client.closed)[0], 1000, 'it ends when the function returns');
  });

  for (const [ending, code, reason] of [
    ['return', 1000, ''],
    ['close', 4001, 'enough'],
    ['throw', 1011, 'SERVE_INFERENCE_FAILED: The model failed on this call.'],
    ['exit', 1011, 'SERVE_WORKER_LOST: The worker died while running this call (exit code 3).'],
  ] as const)
    test(`a function that ends by ${ending} closes it with ${code}`, async (t) => {
      const client = await openSocket(t, shared.server, '/does');
      client.socket.send(ending);
      assert.deepEqual(await client.closed, [code, reason]);
    });

  test('a client that leaves aborts the signal of the function, and its worker serves the next call', async (t) => {
    const client = await openSocket(t, shared.server, '/does', { 'x-request-id': 'left' });
    client.socket.send('await go');
    await shared.cues.untilNoted('heard left: await go');
    client.socket.close();
    await shared.cues.untilNoted(/^aborted left: the client closed the connection/);
    shared.cues.give('go');
    await shared.cues.untilNoted('ended left');
    assert.equal((await post(shared.server, '/', {})).status, 200);
  });

  test('one that waits for a worker is open, and loses no message', async (t) => {
    const first = await openSocket(t, shared.server, '/does', { 'x-request-id': 'first' });
    first.socket.send('await go');
    await shared.cues.untilNoted('heard first: await go');
    const second = await openSocket(t, shared.server, '/echo');
    for (const message of ['early', 'bird']) second.socket.send(message);
    await shared.server.until(({ model }) => model.queue.waiting === 1);
    shared.cues.give('go');
    await first.heard(1);
    first.socket.close();
    assert.deepEqual(await second.heard(2), ['early', 'bird']);
  });

  test('a path without a route is 404; a plain request to a WebSocket route is 426', async (t) => {
    await assert.rejects(openSocket(t, shared.server, '/nowhere'), { status: 404, code: 'SERVE_NOT_FOUND' });
    const answer = await post(shared.server, '/echo', {});
    assert.deepEqual([answer.status, answer.headers.get('upgrade')], [426, 'websocket']);
  });
});
