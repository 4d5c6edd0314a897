/** Clients of WebSockets that are slow, rude or gone, and connections on which upgrades are piled up. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import WebSocket from 'ws';
import { makeCues } from '../helpers/cues.js';
import { post } from '../helpers/potassium.js';
import { RawConnection } from '../helpers/raw-http.js';
import { BINARY, HANDSHAKE, TEXT, frameHead, openRawSocket } from '../helpers/raw-web-socket.js';
import { withEachRuntime, withOneRuntime } from '../helpers/runtimes.js';
import { fixture, startServer } from '../helpers/server.js';
import { startHere } from '../helpers/here.js';
import { shareServer } from '../helpers/shared-server.js';
import { openSocket } from '../helpers/web-socket.js';

const LIMIT = { timeout: 240_000 };
const APP = fixture('websockets.mjs');
const MIB = 2 ** 20;
const H2C = 'Host: test\r\nConnection: Upgrade\r\nUpgrade: h2c';

describe('on one server', LIMIT, () => {
  const shared = shareServer(APP);

  test('upgrades that are not granted, one behind the other, are answered one by one', LIMIT, async (t) => {
    const withKey = await startHere(APP, { t, args: ['--api-key', 'k'] });
    for (const server of [shared.server, withKey]) {
      const connection = await RawConnection.open(server);
      t.after(() => connection.destroy());
      connection.send(`GET /livez HTTP/1.1\r\n${H2C}\r\n\r\n`.repeat(3));
      connection.get('/livez');
      const statuses: number[] = [];
      for (let i = 0; i < 4; i += 1) statuses.push((await connection.reply()).status);
      assert.deepEqual(statuses, [200, 200, 200, 200]);
      for (let i = 0; i < 3; i += 1) {
        connection.send(`POST / HTTP/1.1\r\n${H2C}\r\nContent-Length: 2\r\n\r\n{}`);
        assert.equal((await connection.reply()).status, server === withKey ? 401 : 400);
      }
      connection.get('/livez');
      assert.equal((await connection.reply()).status, 200);
    }
    await withKey.stop();
  });

  test('many upgrades on one connection leave no listeners behind', LIMIT, async (t) => {
    const { server } = shared;
    const connection = await RawConnection.open(server);
    t.after(() => connection.destroy());
    for (let i = 0; i < 40; i += 1) {
      connection.send(`GET /livez HTTP/1.1\r\n${H2C}\r\n\r\n`);
      assert.equal((await connection.reply()).status, 200);
    }
    assert.doesNotMatch(server.stderr(), /MaxListeners/);
  });

  test('a handshake with a mistake in it is refused like any request', LIMIT, async (t) => {
    const { server } = shared;
    for (const [mistake, expected] of [
      ['Sec-WebSocket-Protocol: a,,b', [400, 'SERVE_BAD_REQUEST']],
      ['Content-Length: 2', [426, 'SERVE_UPGRADE_REQUIRED']],
    ] as const) {
      const connection = await RawConnection.open(server);
      t.after(() => connection.destroy());
      connection.send(`GET /echo HTTP/1.1\r\n${HANDSHAKE}\r\n${mistake}\r\n\r\n`);
      const { status, body } = await connection.reply();
      const { error } = JSON.parse(body) as { error: { code: string } };
      assert.deepEqual([status, error.code], expected);
    }
    for (const version of ['8', '13, 8', '']) {
      const connection = await RawConnection.open(server);
      t.after(() => connection.destroy());
      connection.send(`GET /echo HTTP/1.1\r\n${HANDSHAKE.replace(': 13', `: ${version}`)}\r\n\r\n`);
      const { status, headers, body } = await connection.reply();
      assert.deepEqual([status, headers['sec-websocket-version']], [426, '13'], body);
    }
    const old = await RawConnection.open(server);
    t.after(() => old.destroy());
    old.send(`GET /echo HTTP/1.0\r\n${HANDSHAKE}\r\n\r\n`);
    assert.equal((await old.reply()).status, 426);
    assert.equal((await server.status()).model.queue.arriving, 0, 'no place is lost');
  });

  test('a handshake behind a call that runs waits for its answer', LIMIT, async (t) => {
    const { server, cues } = shared;
    const connection = await RawConnection.open(server);
    t.after(() => connection.destroy());
    connection.post('1', ['Content-Type: application/json'], '/held');
    connection.send(`GET /echo HTTP/1.1\r\n${HANDSHAKE}\r\n\r\n`);
    await cues.untilNoted('held');
    assert.equal(connection.rest, '');
    cues.give('let go');
    assert.equal((await connection.reply()).body, '"held"');
    await connection.received('101 Switching Protocols');
    connection.send(Buffer.concat([frameHead(TEXT, 5), Buffer.from('hello')]));
    await connection.received('\x81\x05hello');
    connection.destroy();
  });

  test(
    'a client that closes, or breaks the protocol, and leaves the connection open holds no worker',
    LIMIT,
    async (t) => {
      const { server } = shared;
      for (const rude of [frameHead(8, 0), frameHead(TEXT, 1, false), Buffer.from([0xff, 0xff])]) {
        const client = await openRawSocket(server, '/echo');
        t.after(() => client.destroy());
        client.send(rude);
        await server.until(({ model }) => model.inFlight === 0);
        await client.closed();
      }
      assert.equal((await post(server, '/', {})).status, 200);
    },
  );
});

describe('on one server of 8 MB', LIMIT, () => {
  const shared = shareServer(APP, { args: ['--queue-bytes', '8mb'] });

  test(
    'clients that are refused for --queue-bytes fill no memory, whatever they go on sending',
    LIMIT,
    async (t) => {
      const { server, cues } = shared;
      const first = await openSocket(t, server, '/does');
      first.socket.send('await go');
      await cues.untilNoted(/^heard/);
      const { rssBytes } = (await server.status()).front;
      const clients = await Promise.all(Array.from({ length: 3 }, () => openRawSocket(server, '/late')));
      for (const client of clients) {
        client.send(frameHead(BINARY, 90 * MIB));
        client.send(Buffer.alloc(80 * MIB));
      }
      for (const client of clients) await client.closed();
      const after = await server.until(({ model }) => model.queue.bytes === 0 && model.inFlight === 1);
      const grown = after.front.rssBytes - rssBytes;
      assert.ok(grown < 150 * MIB, `the front grew by ${Math.round(grown / MIB)} MiB for 240`);
      assert.equal(after.replies['SERVE_QUEUE_FULL'], 3);
      cues.give('go');
      await first.heard(1);
      for (const client of clients) client.destroy();
      first.socket.terminate();
      await server.until(({ model }) => model.inFlight === 0);
    },
  );

  test(
    'parts of one byte count for the memory of each, and for pongs that were read with them',
    LIMIT,
    async (t) => {
      const { server } = shared;
      const refused = (await server.status()).replies['SERVE_QUEUE_FULL'] ?? 0;
      const client = await openRawSocket(server, '/echo');
      t.after(() => client.destroy());
      const pong = Buffer.concat([Buffer.from([0x8a, 0x80 | 125, 0, 0, 0, 0]), Buffer.alloc(125)]);
      const pongs = Buffer.concat(Array.from({ length: 500 }, () => pong));
      const part = (opcode: number): Buffer => Buffer.from([opcode, 0x81, 0, 0, 0, 0, 0x2e]);
      for (let i = 0; i < 400; i += 1) client.send(Buffer.concat([part(i === 0 ? BINARY : 0), pongs]));
      await client.closed();
      await server.until(({ replies }) => replies['SERVE_QUEUE_FULL'] === refused + 1);
      const fragments = await openRawSocket(server, '/echo');
      t.after(() => fragments.destroy());
      fragments.send(part(BINARY));
      for (let i = 0; i < 10; i += 1)
        fragments.send(Buffer.concat(Array.from({ length: 9000 }, () => part(0))));
      await fragments.closed();
      await server.until(({ replies }) => replies['SERVE_QUEUE_FULL'] === refused + 2);
    },
  );
});

test('pings do not count against --queue-bytes', LIMIT, async (t) => {
  const server = await startHere(APP, { t, args: ['--queue-bytes', '256kb'] });
  const client = await openSocket(t, server, '/echo');
  const payload = Buffer.alloc(125);
  for (let round = 0; round < 45; round += 1) {
    let pongs = 0;
    const all = new Promise<void>((resolve) => {
      client.socket.removeAllListeners('pong').on('pong', () => {
        pongs += 1;
        if (pongs === 50) resolve();
      });
    });
    for (let i = 0; i < 50; i += 1) client.socket.ping(payload);
    await all;
  }
  assert.ok((await server.status()).model.queue.bytes < 64 * 1024, 'what one read may bring');
  client.socket.send('still here');
  await client.heard(1);
  await server.stop();
});

test('a message that arrives slowly is no silence, and needs no pong', LIMIT, async (t) => {
  const args = ['--websocket-idle-timeout', '2s', '--workers', '2'];
  const server = await startHere(APP, { t, args });
  await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
  const slow = await openRawSocket(server, '/echo');
  t.after(() => slow.destroy());
  const lengthBytes = 10_000;
  let sentBytes = 0;
  slow.send(frameHead(TEXT, lengthBytes));
  const trickle = setInterval(() => {
    slow.send('x');
    sentBytes += 1;
  }, 50);
  t.after(() => clearInterval(trickle));
  const silent = await openSocket(t, server, '/echo');
  const [code] = await silent.closed;
  assert.equal(code, 1008, 'longer than the silence that is allowed');
  clearInterval(trickle);
  slow.send('x'.repeat(lengthBytes - sentBytes));
  await slow.received('x'.repeat(lengthBytes));
  await server.stop();
});

withEachRuntime(({ app }) => {
  test('an app that talks', LIMIT, async (t) => {
    const cues = makeCues(t);
    const args = ['--websocket-idle-timeout', '2500ms'];
    const server = await startServer(app('websockets'), { t, env: cues.env, args });
    await server.until(({ state }) => state === 'ready');

    await t.test('to a client that left, and handles nothing, keeps its worker', async () => {
      for (let i = 0; i < 5; i += 1) {
        const client = await openSocket(t, server, '/ticks');
        await client.heard(2);
        client.socket.terminate();
        await server.until(({ model }) => model.inFlight === 0);
      }
      assert.equal((await post(server, '/', {})).status, 200);
      cues.give('stop');
    });

    await t.test('and listens is not interrupted, neither by silence nor by a drain', async () => {
      const first = await openSocket(t, server, '/both?ms=300');
      assert.deepEqual(await first.closed, [1000, '']);
      assert.equal(first.messages.length, 10);
      const second = await openSocket(t, server, '/both?ms=300');
      await second.heard(1);
      const { model } = await server.status();
      assert.equal(model.workers[0]?.restarts, 0);
      server.process.kill('SIGINT');
      assert.deepEqual(await second.closed, [1000, '']);
      assert.equal(second.messages.length, 10);
      assert.deepEqual(await server.ended, { code: 0, signal: null });
      assert.doesNotMatch(server.stderr(), /rejection/);
    });
  });
});

withOneRuntime(({ app }) => {
  test('two hundred short conversations leave no open file behind', LIMIT, async (t) => {
    const server = await startHere(app('websockets'), { t, args: ['--workers', '2'] });
    await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
    for (let round = 0; round < 20; round += 1) {
      await Promise.all(
        Array.from({ length: 10 }, async (_, i) => {
          const socket = new WebSocket(`${server.url.replace('http', 'ws')}/echo`);
          socket.on('error', () => {});
          await once(socket, 'open');
          if (i % 3 === 0) socket.terminate();
          else socket.send('x', () => (i % 3 === 1 ? socket.close() : socket.terminate()));
          await once(socket, 'close');
        }),
      );
    }
    const { model } = await server.until(({ model: { inFlight, queue } }) => inFlight + queue.waiting === 0);
    assert.deepEqual([model.queue.bytes, model.queue.arriving], [0, 0]);
    assert.equal((await post(server, '/', {})).status, 200);
    await server.stop();
  });
});
