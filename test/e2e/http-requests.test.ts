/** Requests and replies: who answers what, ids, headers, connections, broken requests. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { ask, errorOf } from '../helpers/ask.js';
import { RawConnection, type RawReply } from '../helpers/raw-http.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { call, eventually, startServer, type Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };
const MADE = /^[0-9a-f]{32}$/;
/** Numbers as docs/http.md writes them: no zeros at the end. */
const TIMING = /^queue;dur=\d+\.\d\d, run;dur=\d+\.\d\d$/;

interface Route {
  readonly request: string;
  readonly status: number;
  readonly code?: string;
  readonly allow?: string;
}

const ROUTES: readonly Route[] = [
  { request: 'POST /', status: 200 },
  { request: 'POST /?a=1', status: 200 },
  { request: 'GET /healthcheck', status: 200 },
  { request: 'GET /healthcheck?probe=1', status: 200 },
  { request: 'HEAD /healthcheck', status: 200 },
  { request: 'GET /livez', status: 200 },
  { request: 'GET /readyz', status: 200 },
  { request: 'GET /status', status: 200 },
  { request: 'GET /', status: 405, code: 'SERVE_METHOD_NOT_ALLOWED', allow: 'POST, OPTIONS' },
  { request: 'PUT /', status: 405, code: 'SERVE_METHOD_NOT_ALLOWED', allow: 'POST, OPTIONS' },
  { request: 'DELETE /', status: 405, code: 'SERVE_METHOD_NOT_ALLOWED', allow: 'POST, OPTIONS' },
  { request: 'POST /healthcheck', status: 405, code: 'SERVE_METHOD_NOT_ALLOWED', allow: 'GET, HEAD' },
  { request: 'DELETE /status', status: 405, code: 'SERVE_METHOD_NOT_ALLOWED', allow: 'GET, HEAD' },
  { request: 'POST /nope', status: 404, code: 'SERVE_NOT_FOUND' },
  { request: 'GET /healthcheck/', status: 404, code: 'SERVE_NOT_FOUND' },
  { request: 'GET /Livez', status: 404, code: 'SERVE_NOT_FOUND' },
  { request: 'GET /nope', status: 404, code: 'SERVE_NOT_FOUND' },
  { request: 'GET //', status: 404, code: 'SERVE_NOT_FOUND' },
  { request: 'OPTIONS *', status: 404, code: 'SERVE_NOT_FOUND' },
];

/** Checks the one shape of an error and returns its code. */
function codeOf({ status, headers, body }: RawReply): string {
  assert.ok(status >= 400, `${status} ${body}`);
  assert.equal(headers['content-type'], 'application/json');
  const { error, ...rest } = JSON.parse(body) as { error: Record<string, unknown> };
  assert.deepEqual(
    [Object.keys(rest), Object.keys(error)],
    [[], ['code', 'message', 'requestId', 'source', 'begun']],
  );
  assert.equal(error['requestId'], headers['x-request-id']);
  assert.equal(error['source'], 'server', 'the app never saw it');
  assert.equal(error['begun'], false);
  assert.ok(String(error['message']).length > 5);
  return String(error['code']);
}

function digest(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

withOneRuntime(({ app }) => {
  describe('over HTTP', LIMIT, () => {
    let server: Server;
    before(async () => {
      server = await startServer(app('echoes'));
      await server.until(({ state }) => state === 'ready');
    });
    after(async () => {
      const { model } = await server.status();
      await server.stop();
      const { waiting, arriving, bytes } = model.queue;
      assert.deepEqual(
        [waiting, arriving, bytes, model.inFlight],
        [0, 0, 0, 0],
        'every place was given back',
      );
      assert.doesNotMatch(server.stderr(), /Warning|WARN|ERROR/);
    });

    for (const { request, status, code, allow } of ROUTES) {
      test(`${request} is ${status}${allow === undefined ? '' : `, Allow: ${allow}`}`, async () => {
        const connection = await RawConnection.open(server);
        connection.send(`${request} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`);
        if (request.startsWith('HEAD')) {
          await connection.received('\r\n\r\n');
          assert.match(connection.rest, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n$/, 'no body');
        } else {
          const reply = await connection.reply();
          assert.equal(reply.status, status, reply.body);
          assert.equal(reply.headers['allow'], allow);
          if (code !== undefined) assert.equal(codeOf(reply), code);
        }
        connection.destroy();
      });
    }

    for (const header of ['X-Request-Id', 'X-Banana-Request-Id']) {
      test(`a sane ${header} is taken and given back, on answers and errors`, async () => {
        for (const body of ['{}', '{']) {
          const answer = await call(server.url, body, { [header]: 'my-id:1/a' });
          assert.equal(answer.headers.get('x-request-id'), 'my-id:1/a');
        }
        const health = await fetch(`${server.url}/livez`, { headers: { [header]: 'my-id' } });
        assert.equal(health.headers.get('x-request-id'), 'my-id');
        await health.arrayBuffer();
      });
    }

    for (const id of ['', 'two words', '<script>', 'x'.repeat(129), 'a;b']) {
      test(`the id ${JSON.stringify(id.slice(0, 20))} is replaced by a new one`, async () => {
        const answer = await ask(server, {}, { headers: { 'x-request-id': id } });
        assert.match(answer.headers.get('x-request-id') ?? '', MADE);
      });
    }

    test('a request without an id gets one of its own', async () => {
      const ids = await Promise.all(
        [1, 2, 3].map(async (n) => (await ask(server, n)).headers.get('x-request-id')),
      );
      assert.equal(new Set(ids).size, 3);
      for (const id of ids) assert.match(id ?? '', MADE);
    });

    test('answers and errors of calls have a Server-Timing header', async () => {
      for (const body of ['{}', '{']) {
        const answer = await call(server.url, body);
        assert.match(answer.headers.get('server-timing') ?? '', TIMING, answer.text);
      }
    });

    test('a connection lives on for at least 65 s, over answers, health and errors, and its headers announce it', async () => {
      const connection = await RawConnection.open(server);
      const sends: (() => void)[] = [
        () => connection.post('{}'),
        () => connection.get('/livez'),
        () => connection.get('/nope'),
        () => connection.post('{', [], '/'),
        () => connection.post('{}', [], '/nope'),
        () => connection.post('{}', ['X-Request-Timeout-Seconds: soon']),
        () => connection.get('/'),
        () => connection.post('"last"'),
      ];
      const statuses: number[] = [];
      for (const sendOne of sends) {
        sendOne();
        const { status, headers } = await connection.reply();
        statuses.push(status);
        assert.equal(headers['connection'], 'keep-alive');
        const seconds = Number(/timeout=(\d+)/.exec(headers['keep-alive'] ?? '')?.[1]);
        assert.ok(seconds >= 65, `Keep-Alive: ${headers['keep-alive']}`);
      }
      assert.deepEqual(statuses, [200, 200, 404, 400, 404, 400, 405, 200]);
      connection.destroy();
    });

    test('pipelined requests are answered in their order, by the app or by the server itself', async () => {
      const connection = await RawConnection.open(server);
      const numbers = Array.from({ length: 20 }, (_, i) => i);
      for (const n of numbers) {
        connection.post(String(n), [`X-Request-Id: n${n}`]);
        if (n % 5 === 0) connection.get('/livez');
      }
      for (const n of numbers) {
        const { headers, body } = await connection.reply();
        assert.deepEqual([headers['x-request-id'], body], [`n${n}`, String(n)]);
        if (n % 5 === 0) assert.equal((await connection.reply()).body, '{"state":"alive"}');
      }
      connection.destroy();
    });

    for (const [how, headers] of [
      ['with a length', {}],
      ['in chunks', { 'transfer-encoding': 'chunked' }],
    ] as const) {
      test(`5 MB of JSON ${how} come back intact`, async () => {
        const body = JSON.stringify(
          Array.from({ length: 20 }, () => randomBytes(187_500).toString('base64') + 'ü\u{1F34C}'),
        );
        assert.ok(body.length > 5_000_000);
        const upload = 'transfer-encoding' in headers ? new Blob([body]).stream() : body;
        const init = { method: 'POST', body: upload, duplex: 'half' } as RequestInit;
        const answer = await (
          await fetch(server.url, { ...init, headers: { 'content-type': 'application/json' } })
        ).text();
        assert.equal(digest(Buffer.from(answer)), digest(Buffer.from(body)));
      });
    }

    test('5 MB of bytes come back intact', async () => {
      const bytes = randomBytes(5_000_000);
      const headers = { 'content-type': 'application/octet-stream' };
      const answer = await fetch(server.url, { method: 'POST', body: bytes, headers });
      assert.equal(digest(Buffer.from(await answer.arrayBuffer())), digest(bytes));
    });

    test('a client that waits for 100 Continue is invited, then answered', async () => {
      const connection = await RawConnection.open(server);
      connection.send('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n');
      assert.equal((await connection.reply()).status, 100);
      connection.send('{}');
      const { status, body } = await connection.reply();
      assert.deepEqual([status, body], [200, '{}']);
      connection.destroy();
    });

    test('a request with an unknown expectation is answered as if it had none', async () => {
      const { status } = await RawConnection.ask(
        server,
        'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: tea\r\n\r\n{}',
      );
      assert.equal(status, 200);
    });

    test('HTTP/1.0 is answered', async () => {
      const { status, body } = await RawConnection.ask(
        server,
        'POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}',
      );
      assert.deepEqual([status, body], [200, '{}']);
    });

    const BROKEN: readonly (readonly [what: string, text: string, status: number, code: string])[] = [
      ['no HTTP at all', 'HELLO\r\n\r\n', 400, 'SERVE_BAD_REQUEST'],
      ['a TLS greeting', '\u0016\u0003\u0001\u0002\u0000\u0001\u0000', 400, 'SERVE_BAD_REQUEST'],
      ['no Host', 'POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}', 400, 'SERVE_BAD_REQUEST'],
      ['two Hosts', 'GET /livez HTTP/1.1\r\nHost: x\r\nhOst: x\r\n\r\n', 400, 'SERVE_BAD_REQUEST'],
      ...['two words', 'user@x', 'x/y', 'x:port', '[::1', '[x]', 'x\xe4'].map(
        (host) =>
          [
            `the Host ${JSON.stringify(host)}`,
            `GET /livez HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
            400,
            'SERVE_BAD_REQUEST',
          ] as const,
      ),
      [
        'a length that is no number',
        'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: two\r\n\r\n',
        400,
        'SERVE_BAD_REQUEST',
      ],
      [
        'two lengths',
        'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}',
        400,
        'SERVE_BAD_REQUEST',
      ],
      [
        'a length and chunks',
        'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
        400,
        'SERVE_BAD_REQUEST',
      ],
      [
        'a broken chunk',
        'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
        400,
        'SERVE_BAD_REQUEST',
      ],
      ['CONNECT', 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n', 405, 'SERVE_METHOD_NOT_ALLOWED'],
      [
        'huge headers',
        `POST / HTTP/1.1\r\nHost: x\r\nX-Big: ${'x'.repeat(20_000)}\r\n\r\n`,
        431,
        'SERVE_HEADERS_TOO_LARGE',
      ],
    ];

    for (const [what, text, status, code] of BROKEN) {
      test(`${what}: ${status} ${code}, in the one shape of an error, and the connection ends`, async () => {
        const connection = await RawConnection.open(server);
        connection.send(Buffer.from(text, 'latin1'));
        const reply = await connection.reply();
        assert.deepEqual([reply.status, codeOf(reply)], [status, code]);
        assert.equal(reply.headers['connection'], 'close');
        assert.ok(Math.abs(Date.parse(reply.headers['date'] ?? '') - Date.now()) < 60_000, 'it is dated');
        assert.equal(reply.headers['allow'], status === 405 ? 'GET, HEAD, POST, OPTIONS' : undefined);
        await connection.closed();
      });
    }

    for (const host of [
      '',
      'my_service:8000',
      'a.b-c.example',
      '10.0.0.1:80',
      '[::1]',
      '[fe80::1]:8000',
      'x:',
      '%41',
    ]) {
      test(`the Host ${JSON.stringify(host)} is taken`, async () => {
        const text = `GET /livez HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
        assert.equal((await RawConnection.ask(server, text)).status, 200);
      });
    }

    for (const [what, text] of [
      ['too large headers', `HEAD / HTTP/1.1\r\nHost: x\r\nX-Big: ${'x'.repeat(20_000)}\r\n\r\n`],
      ['a header that is none', 'HEAD / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n'],
      ['a broken chunk', 'HEAD / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'],
      ['no Host', 'HEAD / HTTP/1.1\r\n\r\n'],
      ['an unknown path', 'HEAD /nope HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'],
    ] as const) {
      test(`HEAD with ${what} is refused without a body`, async () => {
        const connection = await RawConnection.open(server);
        connection.send(text);
        await connection.closed();
        assert.match(connection.rest, /^HTTP\/1\.1 4\d\d [^]*\r\n\r\n$/);
        assert.equal(connection.rest.indexOf('\r\n\r\n'), connection.rest.length - 4);
      });
    }

    test('a client that sent nonsense and never hangs up is disconnected', async () => {
      const connection = await RawConnection.open(server, true);
      connection.send('HELLO\r\n\r\n');
      await connection.closed();
      // Ours is still open; once the server has let go of its side, writing to it is answered by a reset.
      await eventually(
        () => {
          connection.send('more\r\n');
          return connection.socket.destroyed;
        },
        60_000,
        () => 'the server keeps the connection',
      );
    });

    test('a client that hangs up rudely while it is refused leaves no error in the log', async () => {
      const connection = await RawConnection.open(server);
      connection.send('POST /nope HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nhalf');
      assert.equal((await connection.reply()).status, 404);
      connection.socket.resetAndDestroy();
      await ask(server, {}); // `after` looks into the log
    });

    test('pipelined behind a call, a client that leaves in the middle of a body gives its place back', async () => {
      const connection = await RawConnection.open(server);
      connection.post('1');
      connection.send('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"a"');
      await connection.reply();
      await server.until(({ model }) => model.queue.arriving === 1);
      connection.destroy();
      await server.until(({ model }) => model.queue.arriving === 0 && model.queue.bytes === 0);
    });

    test('the error of an unknown path names it, and the error of an unknown method lists the allowed ones', async () => {
      const missing = await fetch(`${server.url}/predict`, { method: 'POST', body: '{}' });
      const { error } = (await missing.json()) as { error: { message: string } };
      assert.equal(error.message, 'There is no POST /predict here. Routes here: POST /.');
      const wrong = await fetch(`${server.url}/`);
      assert.equal(
        ((await wrong.json()) as typeof error & { error: typeof error }).error.message,
        '/ takes POST, OPTIONS, not GET.',
      );
    });

    test('every reply to a call is counted in /status, by its outcome', async () => {
      const { replies: before } = await server.status();
      await ask(server, {});
      assert.equal(errorOf(await call(server.url, '{')).code, 'SERVE_BAD_BODY');
      const { replies: afterwards } = await server.status();
      const more = (key: string): number => (afterwards[key] ?? 0) - (before[key] ?? 0);
      assert.deepEqual([more('ok'), more('SERVE_BAD_BODY')], [1, 1]);
    });
  });
});
