import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { brotliDecompressSync, constants, gunzipSync } from 'node:zlib';
import { CompressedResponse } from '../../../../supervisor/http/socket/compressed-response.js';
import { refuse } from '../../../../supervisor/http/socket/refuse.js';

const TEXT = 't'.repeat(2000);

/** Starts a server of these responses; returns its port. */
async function listen(t: TestContext, answer: RequestListener): Promise<number> {
  const server = createServer({ ServerResponse: CompressedResponse }, answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** Asks a server of these responses; `fetch` decodes. */
async function ask(t: TestContext, answer: RequestListener): Promise<Response> {
  return fetch(`http://127.0.0.1:${await listen(t, answer)}`, {
    headers: { connection: 'close', 'accept-encoding': 'gzip, br' },
  });
}

test('an answer with an invalid header leaves no trace in the one that takes its place', async (t) => {
  const answer = await ask(t, (_request, response) => {
    response.setHeader('Vary', 'Origin');
    const type = { 'Content-Type': 'text/plain', 'Content-Length': TEXT.length };
    assert.throws(() => response.writeHead(200, { ...type, 'X-Bad': 'a\u0001b' }));
    response.writeHead(500, { 'Content-Length': 3 }).end('bad');
  });
  assert.deepEqual([answer.headers.get('vary'), answer.headers.get('content-encoding')], ['Origin', null]);
  assert.equal(await answer.text(), 'bad');
});

test('an answer whose headers are set one by one, and whose head is written by its end, is compressed', async (t) => {
  const answer = await ask(t, (_request, response) => {
    response.setHeader('Content-Type', 'text/plain');
    response.setHeader('Content-Length', TEXT.length);
    response.end(TEXT);
  });
  assert.deepEqual(
    [answer.headers.get('vary'), answer.headers.get('content-encoding')],
    ['Accept-Encoding', 'br'],
  );
  assert.equal(await answer.text(), TEXT);
});

test('held bytes count until the answer is out, and the callback of its end comes then', async (t) => {
  const held: number[] = [];
  let [isOut, isCalled] = [false, false];
  const answer = await ask(t, (_request, response) => {
    response.once('finish', () => (isOut = true));
    response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': TEXT.length });
    response.end(Buffer.from(TEXT), () => {
      isCalled = isOut;
      held.push(response.writableLength);
    });
    held.unshift(response.writableLength);
  });
  assert.equal(await answer.text(), TEXT);
  assert.ok((held[0] as number) >= 1);
  assert.deepEqual([isOut, isCalled, held[1]], [true, true, 0]);
});

test('a stream that fails ends after all that was written to it, without the end of its answer', async (t) => {
  const failure = { status: 500, headers: {}, body: Buffer.alloc(0) };
  const port = await listen(t, (request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/plain' });
    for (let i = 0; i < 20; i += 1) response.write(TEXT);
    refuse(request, response, failure, {}, false);
  });
  for (const [coding, decode, flush] of [
    ['gzip', gunzipSync, constants.Z_SYNC_FLUSH],
    ['br', brotliDecompressSync, constants.BROTLI_OPERATION_FLUSH],
  ] as const) {
    const pieces: Buffer[] = [];
    const call = request({ port, headers: { 'accept-encoding': coding } }).end();
    const [answer] = (await once(call, 'response')) as [IncomingMessage];
    answer.on('data', (piece: Buffer) => pieces.push(piece));
    await assert.rejects(once(answer, 'end'), { code: 'ECONNRESET' });
    assert.equal(decode(Buffer.concat(pieces), { finishFlush: flush }).length, 20 * TEXT.length, coding);
  }
});
