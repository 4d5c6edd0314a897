/** A request's memory while its body is not read, with Node's own parser. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterEach, test } from 'node:test';
import { JoinedRequest } from '../../../../supervisor/http/socket/joined-request.js';
import { eventually } from '../../../helpers/server.js';

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** Returns a request with these chunks as its body, and its connection. */
async function sent(chunks: readonly string[], isWhole = true): Promise<[IncomingMessage, Socket]> {
  const server = createServer({ IncomingMessage: JoinedRequest }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const requested = once(server, 'request') as Promise<[IncomingMessage]>;
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  ends.push(
    () => socket.destroy(),
    () => server.close(),
  );
  const body = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`);
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${body.join('')}`);
  if (isWhole) socket.write('0\r\n\r\n');
  const [request] = await requested;
  return [request, socket];
}

async function piecesOf(request: IncomingMessage): Promise<string[]> {
  const pieces: string[] = [];
  request.on('data', (piece: Buffer) => pieces.push(piece.toString('latin1')));
  await once(request, 'end');
  return pieces;
}

const ONES = Array.from({ length: 10_000 }, (_, i) => String.fromCharCode(97 + (i % 26)));

test('unread chunks of one byte are joined', async () => {
  const [request] = await sent(ONES);
  await eventually(
    () => request.complete,
    60_000,
    () => 'the body is whole',
  );
  const pieces = await piecesOf(request);
  assert.equal(pieces.join(''), ONES.join(''));
  assert.ok(pieces.length <= 4, `${pieces.length} pieces`);
});

const MIB = 1024 * 1024;

test('one turn of the event loop takes little of large bodies, and each goes on in its turn', async () => {
  const clients = 6;
  const bodyBytes = 4 * MIB;
  let turn = 0;
  let left = clients;
  const taken: { turn: number; client: number; bytes: number }[] = [];
  const server = createServer({ IncomingMessage: JoinedRequest }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => server.close());
  const ended = new Promise<void>((resolve) => {
    server.on('request', (request: IncomingMessage) => {
      const client = Number(request.url?.slice(1));
      request.on('data', ({ length }: Buffer) => taken.push({ turn, client, bytes: length }));
      request.on('end', () => (left -= 1) === 0 && resolve());
    });
  });
  const countTurns = (): void => {
    turn += 1;
    if (left > 0) setImmediate(countTurns);
  };
  countTurns();
  for (let client = 0; client < clients; client += 1) {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    ends.push(() => socket.destroy());
    socket.write(`POST /${client} HTTP/1.1\r\nHost: x\r\nContent-Length: ${bodyBytes}\r\n\r\n`);
    socket.write(Buffer.alloc(bodyBytes, 'x'));
  }
  await ended;
  const perTurn = new Map<number, number>();
  for (const { turn: at, bytes } of taken) perTurn.set(at, (perTurn.get(at) ?? 0) + bytes);
  assert.equal(
    [...perTurn.values()].reduce((sum, bytes) => sum + bytes, 0),
    clients * bodyBytes,
  );
  const most = Math.max(...perTurn.values());
  assert.ok(most <= 1.25 * MIB, `${most} bytes in one turn`);
  const half = taken.slice(0, taken.length / 2);
  for (let client = 0; client < clients; client += 1)
    assert.ok(
      half.some((piece) => piece.client === client),
      `client ${client} waited for others`,
    );
});

test('a body that is read, paused and resumed is complete', async () => {
  const [request, socket] = await sent(ONES, false);
  const pieces: string[] = [];
  request.on('data', (piece: Buffer) => pieces.push(piece.toString('latin1')));
  await eventually(
    () => pieces.join('').length === ONES.length,
    60_000,
    () => 'the first chunks',
  );
  request.pause();
  socket.write(`${ONES.map((one) => `1\r\n${one}\r\n`).join('')}0\r\n\r\n`);
  await eventually(
    () => request.complete,
    60_000,
    () => 'the body is whole',
  );
  const before = pieces.length;
  request.resume();
  await once(request, 'end');
  assert.equal(pieces.join(''), ONES.join('').repeat(2));
  assert.ok(pieces.length - before <= 4, `${pieces.length - before} pieces`);
});

test('the connection of an unread request is paused, and resumed with the request', async () => {
  const [request, socket] = await sent([], false);
  const chunks = `1000\r\n${'x'.repeat(0x1000)}\r\n${'1\r\nx\r\n'.repeat(100)}`;
  socket.write(`${chunks.repeat(500)}0\r\n\r\n`);
  const { _handle: handle } = request.socket as unknown as { _handle: { reading: boolean } };
  await eventually(
    () => !handle.reading,
    60_000,
    () => 'the connection is paused',
  );
  assert.ok(request.socket.bytesRead < 500_000, `${request.socket.bytesRead} bytes were read`);
  assert.equal((await piecesOf(request)).join('').length, 500 * (0x1000 + 100));
});

test("large chunks, iteration and an empty body behave as with Node's own requests", async () => {
  const large = 'y'.repeat(40_000);
  const [first] = await sent(['x', large, 'z', 'z']);
  let text = '';
  for await (const piece of first) text += String(piece);
  assert.equal(text, `x${large}zz`);
  const [second] = await sent([]);
  assert.deepEqual(await piecesOf(second), []);
});
