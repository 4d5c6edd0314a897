/** The rest of a refused body is read within bounds, on its bytes and on its pieces. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { discardRest, refuse } from '../../../../supervisor/http/socket/refuse.js';

/** More than fit into one read of 64 KiB. */
const CHUNKS = 200_000;

type Handle = (request: IncomingMessage, response: ServerResponse) => void;

const WAYS: Readonly<Record<string, Handle>> = {
  refuse: (request, response) =>
    refuse(request, response, { status: 401, headers: {}, body: Buffer.from('no') }, {}, false),
  'refuse, of a client that may go on': (request, response) =>
    refuse(
      request,
      response,
      { status: 401, headers: {}, body: Buffer.from('no'), readsOnBytes: 4e6 },
      {},
      false,
    ),
  discardRest: (request, response) => {
    response.writeHead(401, { 'Content-Length': 2 }).end('no');
    discardRest(request);
  },
};

/** Opens a connection to a server that answers in this way, and counts the pieces of its request's body. */
async function opened(t: TestContext, handle: Handle): Promise<{ socket: Socket; pieces: () => number }> {
  let pieces = 0;
  const server = createServer((request, response) => {
    request.on('data', () => (pieces += 1));
    handle(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => {});
  t.after(() => {
    socket.destroy();
    server.closeAllConnections();
    server.close();
  });
  return { socket, pieces: () => pieces };
}

const HEAD = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';

async function readAll(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (piece: Buffer) => (text += piece.toString('latin1')));
  await new Promise((resolve) => socket.once('close', resolve)); // a reset may come before: the rest was not read
  return text;
}

test('a refused body in chunks of one byte is cut off, after its answer', async (t) => {
  for (const [way, handle] of Object.entries(WAYS)) {
    const { socket, pieces } = await opened(t, handle);
    socket.write(HEAD + '1\r\nx\r\n'.repeat(CHUNKS));
    assert.match(await readAll(socket), /^HTTP\/1\.1 401 .*\r\n\r\n/s, way);
    assert.ok(pieces() < CHUNKS / 4, `${way}: ${pieces()} pieces were read`);
  }
});

test('a connection that has ended leaves no timer that would keep its input', async (t) => {
  const timers = (): number => process.getActiveResourcesInfo().filter((one) => one === 'Timeout').length;
  for (const [way, handle] of Object.entries(WAYS)) {
    let before;
    do {
      let closed = Promise.resolve<unknown>(undefined);
      const { socket } = await opened(t, (request, response) => {
        closed = once(request.socket, 'close');
        if (handle !== WAYS['discardRest']) response.prependListener('finish', () => discardRest(request));
        handle(request, response);
      });
      before = timers();
      socket.write(HEAD + '1\r\nx\r\n'.repeat(CHUNKS));
      await readAll(socket);
      await closed;
    } while (timers() < before); // one of another test of this process has ended meanwhile, so the count says nothing
    assert.equal(timers(), before, way);
  }
});

test('a refused body of 3,000 chunks of a kilobyte is read to its end', async (t) => {
  for (const [way, handle] of Object.entries(WAYS)) {
    const { socket, pieces } = await opened(t, handle);
    socket.write(`${HEAD}${`400\r\n${'x'.repeat(1024)}\r\n`.repeat(3000)}0\r\n\r\n`);
    socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    assert.match(await readAll(socket), /^HTTP\/1\.1 401 .*\r\n\r\nno/s, way);
    assert.ok(pieces() >= 3000, `${way}: ${pieces()} pieces were read`);
  }
});
