/** Bodies too large and clients too slow: refused while they arrive, with a reply that the client really receives. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { errorOf } from '../helpers/ask.js';
import { RawConnection, type RawReply } from '../helpers/raw-http.js';
import { CLI, call, eventually, fixture, startServer, type Server } from '../helpers/server.js';
import { shareServer, type SharedServer } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };
const MAX_BODY = 100 * 1024;
const HEADER_TIMEOUT_MS = 1500;
const BODY_TIMEOUT_MS = 2000;

function codeOf(reply: RawReply): string {
  return (JSON.parse(reply.body) as { error: { code: string } }).error.code;
}

const head = (...lines: string[]): string => ['POST / HTTP/1.1', 'Host: x', ...lines, '', ''].join('\r\n');

/** Called in a `describe`: a server for its tests, which give every place back. */
function shareLimited(args: readonly string[]): SharedServer {
  after(async () => {
    const { queue } = (await shared.server.status()).model;
    assert.deepEqual([queue.arriving, queue.bytes], [0, 0], 'every place was given back');
  });
  const shared = shareServer(fixture('describes-input.mjs'), { args });
  return shared;
}

const callsSeen = async (server: Server): Promise<number> =>
  (await server.status()).model.workers[0]?.calls ?? NaN;

describe('limits of size', LIMIT, () => {
  const shared = shareLimited(['--max-body', '100kb', '--access-log']);
  // Refused at once, so its connection may live on; but its little body never comes. Looked at in the last test.
  let silent: RawConnection;
  before(async () => {
    silent = await RawConnection.open(shared.server, true);
    silent.send(head('Content-Length: 10', 'X-Request-Timeout-Seconds: none'));
  });

  test('a body at the limit is taken, one byte more is 413 and the app never sees it', async () => {
    const { server } = shared;
    const type = { 'content-type': 'application/octet-stream' };
    const before = await callsSeen(server);
    assert.equal((await call(server.url, Buffer.alloc(MAX_BODY), type)).status, 200);
    const answer = await call(server.url, Buffer.alloc(MAX_BODY + 1), type);
    assert.deepEqual([answer.status, errorOf(answer).code], [413, 'SERVE_BODY_TOO_LARGE']);
    assert.match(errorOf(answer).message, /100 KB \(--max-body\)/);
    assert.equal(await callsSeen(server), before + 1);
  });

  /** Sends until the server hangs up, whatever comes back meanwhile; a well-behaved client would have stopped. */
  async function keepSending(first: string, piece: string): Promise<{ reply: RawReply; sent: number }> {
    const connection = await RawConnection.open(shared.server);
    connection.send(first);
    let sent = 0;
    const pump = (): void => {
      if (connection.socket.destroyed || sent > 50_000_000) return;
      sent += piece.length;
      connection.socket.write(piece, () => setImmediate(pump));
    };
    pump();
    const reply = await connection.reply();
    const repliedAfter = sent;
    await eventually(
      () => connection.socket.destroyed || sent > repliedAfter + 10 * piece.length,
      60_000,
      () => `${sent} bytes are sent, ${repliedAfter} of them before the reply`,
    );
    assert.equal(connection.socket.destroyed, false, 'the connection is not reset under it');
    connection.destroy();
    return { reply, sent };
  }

  test('413 by Content-Length reaches a client that goes on sending', async () => {
    const { reply, sent } = await keepSending(head('Content-Length: 4000000000'), 'x'.repeat(50_000));
    assert.deepEqual([reply.status, codeOf(reply)], [413, 'SERVE_BODY_TOO_LARGE']);
    assert.equal(reply.headers['connection'], 'close');
    assert.ok(sent > 50_000);
  });

  test('413 in the middle of a chunked body reaches a client that goes on sending', async () => {
    const chunk = `${(50_000).toString(16)}\r\n${'x'.repeat(50_000)}\r\n`;
    const { reply } = await keepSending(head('Transfer-Encoding: chunked'), chunk);
    assert.deepEqual([reply.status, codeOf(reply)], [413, 'SERVE_BODY_TOO_LARGE']);
    assert.equal(reply.headers['connection'], 'close');
  });

  test('a refused body that was sent to its end: the connection is closed cleanly behind the reply', async () => {
    const connection = await RawConnection.open(shared.server);
    connection.send(head(`Content-Length: ${MAX_BODY + 1}`));
    connection.send(Buffer.alloc(MAX_BODY + 1));
    assert.equal((await connection.reply()).status, 413);
    assert.equal(await connection.closed(), 'ended');
  });

  test('a client that waits for 100 Continue gets 413 instead, before it sends its body', async () => {
    const connection = await RawConnection.open(shared.server);
    connection.send(head('Content-Length: 200000', 'Expect: 100-continue'));
    const reply = await connection.reply();
    assert.deepEqual([reply.status, codeOf(reply)], [413, 'SERVE_BODY_TOO_LARGE']);
    connection.destroy();
  });

  test('--access-log has a line for a refused request too, with its id and the reason', async () => {
    const { server } = shared;
    await call(server.url, Buffer.alloc(MAX_BODY + 1), { 'x-request-id': 'refused-1' });
    await server.untilPrinted(
      /POST \/ refused .*"requestId":"refused-1","status":413,"code":"SERVE_BODY_TOO_LARGE"/,
    );
  });

  test('a refused client that announced a little more and never sends it is disconnected', async () => {
    const { status, headers } = await silent.reply();
    assert.deepEqual([status, headers['connection']], [400, 'keep-alive']);
    await silent.closed();
  });
});

describe('limits of time', LIMIT, () => {
  const shared = shareLimited([
    ...['--header-timeout', `${HEADER_TIMEOUT_MS}ms`],
    ...['--body-timeout', `${BODY_TIMEOUT_MS}ms`],
  ]);

  for (const [what, text] of [
    ['stop arriving', 'POST / HTTP/1.1\r\nHost: x\r\nX-Half'],
    ['never begin', ''],
  ] as const) {
    test(`headers that ${what} are 408 after the limit`, async () => {
      const startedAtMs = performance.now(); // the server may know of the connection before this process
      const connection = await RawConnection.open(shared.server);
      connection.send(text);
      const reply = await connection.reply();
      const tookMs = performance.now() - startedAtMs;
      assert.deepEqual([reply.status, codeOf(reply)], [408, 'SERVE_REQUEST_TIMEOUT']);
      assert.ok(tookMs >= HEADER_TIMEOUT_MS - 20, `not before its time: ${tookMs} ms`);
      await connection.closed();
    });
  }

  test('headers that trickle in, a byte at a time, are 408 all the same', async () => {
    const connection = await RawConnection.open(shared.server);
    connection.send('POST / HTTP/1.1\r\nX-Slow: ');
    const trickle = setInterval(() => connection.socket.destroyed || connection.send('x'), 50);
    try {
      assert.equal((await connection.reply()).status, 408);
    } finally {
      clearInterval(trickle);
      connection.destroy();
    }
  });

  for (const [what, coding, first] of [
    ['with a length', 'Content-Length: 10', '{"a":'],
    ['in chunks', 'Transfer-Encoding: chunked', '5\r\n{"a":\r\n'],
    ['that never begins', 'Content-Length: 10', ''],
  ] as const) {
    test(`a body ${what} that stops arriving is 408, and the connection ends`, async () => {
      const { server } = shared;
      const before = await callsSeen(server);
      const connection = await RawConnection.open(server);
      const startedAtMs = performance.now();
      connection.send(head(coding, 'X-Request-Id: slow-1') + first);
      const reply = await connection.reply();
      const tookMs = performance.now() - startedAtMs;
      assert.deepEqual([reply.status, codeOf(reply)], [408, 'SERVE_REQUEST_TIMEOUT']);
      assert.equal(reply.headers['x-request-id'], 'slow-1');
      assert.ok(tookMs >= BODY_TIMEOUT_MS - 20, `not before its time: ${tookMs} ms`);
      assert.equal(reply.headers['connection'], 'close');
      connection.destroy();
      assert.equal(await callsSeen(server), before);
    });
  }

  /** Sends a body in bytes, one after the other, while another one is refused for its pause. Resolves with its own longest pause. */
  async function sendSlowly(): Promise<{ longestMs: number; reply: RawReply | null }> {
    const slow = await RawConnection.open(shared.server);
    const lengthBytes = 10_000;
    let [sentBytes, longestMs, sentAtMs] = [0, 0, performance.now()];
    const send = (text: string): void => {
      const nowMs = performance.now();
      longestMs = Math.max(longestMs, nowMs - sentAtMs);
      sentAtMs = nowMs;
      sentBytes += text.length;
      slow.send(text);
    };
    slow.send(head(`Content-Length: ${lengthBytes}`));
    send('"');
    const trickle = setInterval(send, BODY_TIMEOUT_MS / 40, 'x');
    try {
      const stopped = await RawConnection.ask(shared.server, `${head('Content-Length: 10')}"x`);
      assert.equal(stopped.status, 408, 'the longest pause has passed since the slow body began');
    } finally {
      clearInterval(trickle);
    }
    send(`${'x'.repeat(lengthBytes - sentBytes - 1)}"`);
    const reply = await slow.reply().catch(() => null);
    slow.destroy();
    return { longestMs, reply };
  }

  test('a body that is slow but never pauses for long is taken', async () => {
    let sent = await sendSlowly();
    while (sent.longestMs > BODY_TIMEOUT_MS / 2) sent = await sendSlowly(); // this process itself stood still
    assert.equal(sent.reply?.status, 200, sent.reply?.body);
    assert.equal((JSON.parse(sent.reply.body) as { input: unknown }).input, 'x'.repeat(10_000 - 2));
  });
});

test(
  'a server that runs out of file descriptors logs it once, and serves on when connections end',
  LIMIT,
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'banana-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const command = join(folder, 'limited');
    // Enough for the start: Node opens over a hundred modules at once.
    writeFileSync(command, `#!/bin/sh\nulimit -n 500\nexec '${process.execPath}' '${CLI}' "$@"\n`, {
      mode: 0o755,
    });
    const server = await startServer(fixture('echoes.mjs'), { t, command });
    await server.until(({ state }) => state === 'ready');
    const sockets = Array.from({ length: 550 }, () => connect(Number(new URL(server.url).port), '127.0.0.1'));
    for (const socket of sockets) socket.on('error', () => {});
    await server.untilPrinted('the server has used up its 500 file descriptors');
    for (const socket of sockets) socket.destroy();
    const isServing = (): Promise<boolean> =>
      server.status().then(
        () => true,
        () => false,
      );
    await eventually(isServing, 60_000, () => 'no connection is taken any more');
    await server.stop();
    assert.equal(server.stderr().split('file descriptors').length - 1, 1);
  },
);
