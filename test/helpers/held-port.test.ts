import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { holdPort } from './held-port.js';

function refusal(port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const client = connect(port, '127.0.0.1', () => {
      client.destroy();
      resolve(undefined);
    });
    client.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code));
  });
}

test('a held port refuses clients, lets a server listen on it time and again, and is not given to any other program', async () => {
  const port = await holdPort();
  for (let round = 0; round < 3; round += 1) {
    assert.equal(await refusal(port), 'ECONNREFUSED');
    const server = createServer().listen(port, '127.0.0.1');
    await once(server, 'listening');
    assert.equal(await refusal(port), undefined);
    server.close();
    await once(server, 'close');
  }
  for (let i = 0; i < 200; i += 1) {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    assert.notEqual((other.address() as AddressInfo).port, port);
    other.close();
    await once(other, 'close');
  }
});
