/** Requests that arrive while the server is starting, before the handler is loaded. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { ServerResponse, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { LateHandler, createHttpServer } from '../../../../supervisor/http/socket/http-server.js';
import { InputTurns } from '../../../../supervisor/http/socket/input-turns.js';

async function listening(t: TestContext, late: LateHandler): Promise<Server> {
  const server = createHttpServer(10_000, late, ServerResponse, new InputTurns()).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  return server;
}

/** Sends a request for this path; resolves with both ends of its connection when the server has it. */
async function send(server: Server, path: string): Promise<[client: Socket, served: Socket]> {
  const requested = once(server, 'request') as Promise<[{ socket: Socket }]>;
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
  const [request] = await requested;
  return [client, request.socket];
}

test('early requests are handled in order, except those whose clients have disconnected', async (t) => {
  const late = new LateHandler();
  const server = await listening(t, late);
  const [first] = await send(server, '/first');
  const [leaves, served] = await send(server, '/leaves');
  const [second] = await send(server, '/second');
  leaves.destroy();
  if (!served.destroyed) await once(served, 'close');

  const taken: (string | undefined)[] = [];
  late.arrive({
    request: ({ url }, response) => {
      taken.push(url);
      response.end();
    },
    upgrade: () => false,
    fail: () => assert.fail('nothing failed'),
  });
  assert.deepEqual(taken, ['/first', '/second']);
  first.destroy();
  second.destroy();
});
