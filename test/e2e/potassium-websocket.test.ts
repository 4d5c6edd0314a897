/** WebSocket routes: a call that lasts as long as its connection, and has its worker to itself. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { WebSocket as UndiciWebSocket } from 'undici';
import { makeCues } from '../helpers/cues.js';
import { post, potassiumStatus, untilPotassium } from '../helpers/potassium.js';
import { RawConnection } from '../helpers/raw-http.js';
import { withEachRuntime, withOneRuntime, type Language } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { eventually } from '../helpers/server.js';
import { shareHere, shareServer } from '../helpers/shared-server.js';
import { Refused, openSocket } from '../helpers/web-socket.js';

const LIMIT = { timeout: 240_000 };
const MIB = 2 ** 20;

/** The note of a function whose client has left. */
const LEFT: Readonly<Record<Language, RegExp>> = {
  TypeScript: /^aborted x: the client closed the connection/,
  Python: /^aborted x$/,
};

/** The error of a send to a client that has left. */
const CLOSED: Readonly<Record<Language, string>> = { TypeScript: 'AbortError', Python: 'ConnectionError' };

/** Kinds of errors, and what a WebSocket takes. */
const KINDS: Readonly<Record<Language, readonly [type: string, value: string, takes: string]>> = {
  TypeScript: ['TypeError', 'RangeError', 'a Uint8Array, not number'],
  Python: ['TypeError', 'ValueError', 'bytes, not int'],
};

withEachRuntime(({ app, language }) => {
  const APP = app('websockets');
  describe('one server', LIMIT, () => {
    const shared = shareServer(APP, { args: ['--stall-timeout', '5s'], expectedRestarts: 1 });

    test('text, bytes, nothing and megabytes come back as they went, in their order', async (t) => {
      const { server } = shared;
      const { calls } = (await post(server, '/', {})).json<{ calls: number }>();
      const client = await openSocket(t, server, '/echo');
      const large = Buffer.alloc(3 * MIB, 'é');
      const texts = ['hello', '', 'é漢🍌'.repeat(100_000)];
      for (const text of texts) client.socket.send(text);
      for (const bytes of [Buffer.from([0, 255]), Buffer.alloc(0), large]) client.socket.send(bytes);
      const heard = await client.heard(6);
      assert.deepEqual(heard.slice(0, 3), texts);
      assert.deepEqual(heard[3], Buffer.from([0, 255]));
      assert.deepEqual(heard[4], Buffer.alloc(0));
      assert.ok(large.equals(heard[5] as Buffer));
      client.socket.close();
      assert.deepEqual(await client.closed, [1005, '']);
      assert.deepEqual(
        (await post(server, '/', {})).json(),
        { calls: calls + 2 },
        'the context is the worker’s',
      );
    });

    test('another client library, the facts of the handshake, and an end with 1000 when the function returns', async () => {
      const { server } = shared;
      const socket = new UndiciWebSocket(`${server.url.replace('http', 'ws')}/facts?q=1`, {
        headers: { 'X-Custom': 'c', 'X-Banana-Request-Id': 'mine' },
      });
      const closed = once(socket, 'close');
      const [message] = (await once(socket, 'message')) as [MessageEvent];
      assert.deepEqual(JSON.parse(String(message.data)), { id: 'mine', custom: 'c', query: '1', json: null });
      const [{ code }] = (await closed) as [{ code: number }];
      assert.equal(code, 1000);
    });

    test('a client that leaves: the app gets all its messages, then the end; its signal aborts, its sends reject', async (t) => {
      const { server, cues } = shared;
      const { SERVE_CANCELLED: cancelled = 0 } = (await server.status()).replies;
      const client = await openSocket(t, server, '/does', { 'x-request-id': 'x' });
      client.socket.send('await go');
      await cues.untilNoted('heard x: await go');
      client.socket.send('last words');
      client.socket.close();
      await cues.untilNoted(LEFT[language]);
      cues.give('go');
      await cues.untilNoted('ended x');
      assert.deepEqual(cues.notes().slice(-4), [
        `unsent x: ${CLOSED[language]}`,
        'heard x: last words',
        `unsent x: ${CLOSED[language]}`,
        'ended x',
      ]);
      assert.equal((await post(server, '/', {})).status, 200, 'the worker lives');
      await server.until(({ replies }) => replies['SERVE_CANCELLED'] === cancelled + 1);
    });

    test('an app that does not receive holds up the client, and gets everything later', async (t) => {
      const { server, cues } = shared;
      const client = await openSocket(t, server, '/late', { 'x-request-id': 'x' });
      await cues.untilNoted('begun x');
      const before = (await server.status()).front.rssBytes;
      for (let i = 0; i < 64; i += 1) client.socket.send(Buffer.alloc(MIB));
      const rss = (await server.status()).front.rssBytes;
      assert.ok(
        client.socket.bufferedAmount > 32 * MIB,
        `${client.socket.bufferedAmount} bytes wait in the client`,
      );
      assert.ok(rss - before < 32 * MIB, `the front grew by ${rss - before} bytes`);
      client.socket.close();
      cues.give('listen');
      await cues.untilNoted(`got x: ${64 * MIB}`);
    });
    test('wrong uses are errors in the app', async (t) => {
      const { server } = shared;
      const client = await openSocket(t, server, '/mistakes');
      const [type, value, takes] = KINDS[language];
      assert.deepEqual(await client.heard(3), [
        `${type}: send() takes text or ${takes}`,
        `${value}: close() takes the code 1000, or one from 3000 to 4999, not 1001`,
        `${value}: close() takes a reason of up to 123 bytes`,
      ]);
      await client.closed;
    });

    test('a WebSocket that waits for a worker is open, and loses no message of its client', async (t) => {
      const { server, cues } = shared;
      const first = await openSocket(t, server, '/does');
      first.socket.send('await go');
      await cues.untilNoted(/^heard/);
      const second = await openSocket(t, server, '/echo');
      const third = await openSocket(t, server, '/echo');
      second.socket.send('early');
      second.socket.send('bird');
      third.socket.send('gone before its turn');
      await server.until(({ model }) => model.queue.waiting === 2);
      third.socket.close();
      await server.until(({ model }) => model.queue.waiting === 1);
      cues.give('go');
      await first.heard(1);
      first.socket.close();
      assert.deepEqual(await second.heard(2), ['early', 'bird']);
    });

    test('a WebSocket ends by a return, a close, an error (without its text) or the death of the worker', async (t) => {
      const { server } = shared;
      for (const [says, code, reason, messages] of [
        ['return', 1000, '', []],
        ['close', 4001, 'enough', []],
        ['throw', 1011, 'SERVE_INFERENCE_FAILED: The model failed on this call.', []],
        ['exit', 1011, 'SERVE_WORKER_LOST: The worker died while running this call (exit code 3).', []],
      ] as const) {
        const client = await openSocket(t, server, '/does');
        client.socket.send(says);
        assert.deepEqual(await client.closed, [code, reason], says);
        assert.deepEqual(client.messages, messages);
      }
      await server.untilPrinted('the secret of this app');
      const counting = await openSocket(t, server, '/does');
      counting.socket.send('count 3');
      assert.deepEqual(await counting.heard(4), ['0', '1', '2', 'done'], 'sends need not be awaited');
      counting.socket.close();
    });

    test('a client that does not read holds up the app, and is given up after --stall-timeout', async (t) => {
      const { server, cues } = shared;
      const client = await openSocket(t, server, '/does', { 'x-request-id': 'x' });
      client.socket.send('flood');
      await client.heard(1);
      client.socket.pause();
      await cues.untilNoted(`flooded x: ${CLOSED[language]}`);
      const sent = cues.notes().filter((line) => line.startsWith('sent')).length;
      assert.ok(
        sent < 64 + client.messages.length,
        `${sent} MiB went out to a client that read ${client.messages.length}`,
      );
      await server.until(({ replies }) => replies['SERVE_SLOW_READER'] === 1);
      assert.equal((await post(server, '/', {})).status, 200, 'the worker lives');
    });
  });

  test('the run timeout is for one message; a silent client is disconnected', LIMIT, async (t) => {
    const cues = makeCues(t);
    const timeouts = ['--run-timeout', '4s', '--websocket-idle-timeout', '4s'];
    const args = [...timeouts, '--workers', '2'];
    const server = await startHere(APP, { t, env: cues.env, args, expectedRestarts: 1 });
    const patient = await openSocket(t, server, '/echo');
    let said = 0;
    const talk = async (): Promise<void> => {
      patient.socket.send(`${said}`);
      said += 1;
      await patient.heard(said);
    };
    await talk();
    const slow = await openSocket(t, server, '/does');
    slow.socket.send('spin never');
    let isSlowClosed = false;
    void slow.closed.finally(() => (isSlowClosed = true));
    while (!isSlowClosed) {
      await talk();
      await new Promise((resolve) => setTimeout(resolve, 100)); // in all longer than the run timeout
    }
    assert.deepEqual(await slow.closed, [
      1011,
      'SERVE_INFERENCE_TIMEOUT: The call ran longer than 4000 ms (--run-timeout).',
    ]);
    assert.deepEqual(await patient.closed, [
      1008,
      'SERVE_REQUEST_TIMEOUT: No message was sent for 4 s (--websocket-idle-timeout).',
    ]);
    await server.until(({ model }) => model.workers.some(({ restarts }) => restarts === 1));
    const next = await openSocket(t, server, '/echo');
    next.socket.send('alive');
    await next.heard(1);
    await server.stop();
  });

  test(
    'a drain closes a WebSocket that waits for its client with 1001; one that works sends its last message first',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const server = await startHere(APP, { t, env: cues.env, args: ['--workers', '2'] });
      await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
      const idle = await openSocket(t, server, '/echo');
      idle.socket.send('a');
      await idle.heard(1);
      const busy = await openSocket(t, server, '/does');
      busy.socket.send('await go');
      await cues.untilNoted(/^heard/);
      server.process.kill('SIGINT');
      assert.deepEqual(await idle.closed, [1001, 'SERVE_SHUTTING_DOWN: The server is shutting down.']);
      await assert.rejects(
        openSocket(t, server, '/echo'),
        (error) => error instanceof Refused && error.status === 503,
      );
      cues.give('go');
      assert.deepEqual(await busy.closed, [1001, 'SERVE_SHUTTING_DOWN: The server is shutting down.']);
      assert.deepEqual(busy.messages, ['done']);
      assert.deepEqual(await server.ended, { code: 0, signal: null });
    },
  );
});

const KEY = 's3cret=key';
const KEY_PROTOCOL = `banana-key.${Buffer.from(KEY).toString('base64url')}`;

/** The front takes the key out, and checks it, before a worker of any language sees the request. */
withOneRuntime(({ app }) => {
  describe('with a key as a subprotocol, as in a browser', LIMIT, () => {
    const args = ['--api-key', KEY, '--access-log', '--log-format', 'json', '--log-level', 'debug'];
    const shared = shareServer(app('websockets'), { args, key: KEY });

    for (const [offered, selected] of [
      [[KEY_PROTOCOL, 'banana-serve'], 'banana-serve'],
      [['chat.v2', KEY_PROTOCOL, 'chat'], 'chat.v2'],
    ] as const)
      test(`${selected} is selected from ${offered.join(', ')}, and the app sees no key`, async (t) => {
        const client = await openSocket(t, shared.server, '/headers', {}, offered);
        assert.equal(client.socket.protocol, selected);
        const [seen] = await client.heard(1);
        const others = offered.filter((one) => one !== KEY_PROTOCOL).join(', ');
        assert.equal((JSON.parse(String(seen)) as Record<string, string>)['sec-websocket-protocol'], others);
        assert.doesNotMatch(String(seen), /banana-key|s3cret/);
      });

    test('a wrong key is 401, and a right one learns of a path without a route', async (t) => {
      const wrong = ['banana-key.d3Jvbmc', 'banana-serve'];
      const right = [KEY_PROTOCOL, 'banana-serve'];
      await assert.rejects(openSocket(t, shared.server, '/echo', {}, wrong), { status: 401 });
      await assert.rejects(openSocket(t, shared.server, '/nowhere', {}, wrong), { status: 401 });
      await assert.rejects(openSocket(t, shared.server, '/nowhere', {}, right), { status: 404 });
    });

    test('no log line shows the key', async () => {
      await shared.server.untilPrinted('SERVE_NOT_FOUND');
      const shown = shared.server.stderr() + shared.server.stdout();
      assert.doesNotMatch(shown, new RegExp(`s3cret|${KEY_PROTOCOL}`));
    });
  });
});

withOneRuntime(({ app }) => {
  const APP = app('websockets');
  describe('one server', LIMIT, () => {
    const shared = shareHere(APP);

    test('a plain request to a WebSocket route is refused; an upgrade to another protocol is served as a plain request', async () => {
      const { server } = shared;
      const connection = await RawConnection.open(server);
      const answer = async (head: string, body = ''): Promise<readonly [number, string | undefined]> => {
        connection.send(`${head}\r\nHost: test\r\n\r\n${body}`);
        const reply = await connection.reply();
        return [reply.status, reply.headers['upgrade'] ?? reply.headers['allow']];
      };
      assert.deepEqual(await answer('GET /echo HTTP/1.1'), [426, 'websocket']);
      assert.deepEqual(await answer('POST /echo HTTP/1.1\r\nContent-Length: 2', '{}'), [426, 'websocket']);
      assert.deepEqual(await answer('OPTIONS /echo HTTP/1.1'), [200, 'GET, OPTIONS']);
      const upgrade = 'Connection: Upgrade\r\nUpgrade: ';
      const json = 'Content-Type: application/json\r\nContent-Length: 2';
      assert.deepEqual(await answer(`POST / HTTP/1.1\r\n${upgrade}h2c\r\n${json}`, '{}'), [200, undefined]);
      assert.deepEqual(await answer(`GET /readyz HTTP/1.1\r\n${upgrade}websocket`), [200, undefined]);
      assert.deepEqual(await answer(`GET / HTTP/1.1\r\n${upgrade}websocket`), [405, 'POST, OPTIONS']);
      assert.deepEqual(await answer(`GET /nowhere HTTP/1.1\r\n${upgrade}websocket`), [404, undefined]);
      const handshake = `GET /echo HTTP/1.1\r\n${upgrade}websocket\r\nSec-WebSocket-Version: 13`;
      assert.deepEqual(await answer(handshake), [400, undefined]);
      assert.equal(await connection.closed(), 'ended', 'HTTP is not read there any more');
      connection.destroy();
    });

    test('pings are answered, and health and handshakes, while the model has the thread', async (t) => {
      const { server, cues } = shared;
      const client = await openSocket(t, server, '/does');
      client.socket.send('spin go');
      await cues.untilNoted(/^heard/);
      const pong = once(client.socket, 'pong');
      client.socket.ping();
      await pong;
      assert.equal((await fetch(`${server.url}/healthcheck`)).status, 200);
      const next = await openSocket(t, server, '/echo');
      next.socket.send('after you');
      await untilPotassium(server, ({ queue_length }) => queue_length === 1);
      cues.give('go');
      await client.heard(1);
      client.socket.close();
      await next.heard(1);
    });
  });

  test('a WebSocket is refused like any call: without a key, with a full queue', LIMIT, async (t) => {
    const cues = makeCues(t);
    const args = ['--api-key', 'k', '--queue-size', '0'];
    const server = await startHere(APP, { t, env: cues.env, args });
    await server.until(({ state }) => state === 'ready');
    await assert.rejects(openSocket(t, server, '/echo'), { status: 401, code: 'SERVE_UNAUTHORIZED' });
    const key = { authorization: 'Bearer k' };
    const client = await openSocket(t, server, '/echo', key);
    client.socket.send('a');
    await client.heard(1);
    await assert.rejects(openSocket(t, server, '/echo', key), { status: 503, code: 'SERVE_QUEUE_FULL' });
    await server.stop();
  });

  test(
    'a WebSocket is held while the app loads, and closed with 1008 if its path is no route',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      cues.give('import may not end');
      const server = await startHere(APP, { t, env: cues.env });
      const right = await openSocket(t, server, '/echo');
      const wrong = await openSocket(t, server, '/nowhere');
      right.socket.send('early');
      assert.equal((await fetch(`${server.url}/readyz`)).status, 503);
      cues.give('import may end');
      assert.deepEqual(await wrong.closed, [1008, 'SERVE_NOT_FOUND: No such route.']);
      assert.deepEqual(await right.heard(1), ['early']);
      await server.stop();
    },
  );

  describe('two workers', LIMIT, () => {
    const shared = shareHere(APP, { args: ['--max-body', '1mb', '--workers', '2'] });

    test('a connection has its worker to itself: others wait, or run elsewhere, and nothing is sent ahead', async (t) => {
      const { server } = shared;
      await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
      for (let i = 0; i < 100; i += 1) await post(server, '/', {}); // calls are known to be short: some may be sent ahead
      const first = await openSocket(t, server, '/echo');
      first.socket.send('a');
      await first.heard(1);
      const answers = await Promise.all(Array.from({ length: 50 }, () => post(server, '/', {})));
      assert.ok(
        answers.every(({ status }) => status === 200),
        'the other worker answers them',
      );
      const second = await openSocket(t, server, '/echo');
      second.socket.send('b');
      await second.heard(1);
      const held = post(server, '/', {});
      await server.until(({ model }) => model.queue.waiting === 1);
      const status = await potassiumStatus(server);
      assert.deepEqual([status.gpu_available, status.in_flight, status.queue_length], [false, 2, 1]);
      assert.equal(status.sequence_number, 151, 'a handshake is no POST');
      second.socket.close();
      assert.equal((await held).status, 200);
      first.socket.send('still there');
      await first.heard(2);
    });

    test('a message longer than --max-body ends its connection with 1009, and no other', async (t) => {
      const { server } = shared;
      await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
      const other = await openSocket(t, server, '/echo');
      other.socket.send('a');
      await other.heard(1);
      const client = await openSocket(t, server, '/echo');
      client.socket.send(Buffer.alloc(2 * MIB));
      assert.equal((await client.closed)[0], 1009);
      other.socket.send('b');
      await other.heard(2);
      await eventually(
        async () => (await server.status()).model.inFlight === 1,
        60_000,
        () => 'its worker is free again',
      );
    });
  });
});
