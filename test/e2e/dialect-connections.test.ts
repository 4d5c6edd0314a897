/** A dialect may end the connection after a status, and keep headers for itself. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Dialect } from '../../supervisor/http/dialects/dialect.js';
import { MAIN_DIALECTS } from '../../supervisor/http/dialects/index.js';
import { serve } from '../../supervisor/serve.js';
import type { ServerHandle } from '../../supervisor/server/server-handle.js';
import { RawConnection, type RawReply } from '../helpers/raw-http.js';
import { fixture } from '../helpers/server.js';
import { tiny } from '../supervisor/http/dialects/tiny.js';

const MAX_BODY = 2048;

/** Speaks as `tiny` does, and closes from 400 up, except where a body was too large. */
const closing: Dialect = {
  ...tiny,
  claim: (ask, models) =>
    ask.path === '/x/teapot'
      ? { auth: 'none', counts: false, methods: 'GET', act: { write: (ctx) => void (ctx.status = 418) } }
      : tiny.claim(ask, models),
  ownHeaders: new Set(['x-dialect']),
  closes: (status) => status >= 400,
  fail: (error, requestId, ask) => {
    const isTooLarge = error.code === 'SERVE_BODY_TOO_LARGE';
    const ending = isTooLarge ? { readsOnBytes: 2 * MAX_BODY } : { closes: true };
    return { ...tiny.fail(error, requestId, ask), ...ending };
  },
};

describe('a dialect that ends connections by the status of the reply', { timeout: 240_000 }, () => {
  let server: ServerHandle;
  before(async () => {
    const dialects = { inOrder: [closing, ...MAIN_DIALECTS.inOrder], default: MAIN_DIALECTS.default };
    const given = { app: fixture('answers-as-told.mjs'), host: '127.0.0.1', port: 0 } as const;
    server = await serve({ ...given, logLevel: 'silent', maxBody: MAX_BODY }, { dialects });
    await server.ready;
  });
  after(async () => {
    await server.close();
  });

  const PATH = '/x/answers-as-told/';

  /** One request on a connection of its own: its reply, and whether the connection takes another one. */
  async function put(body: string, lines: readonly string[] = [], path = PATH): Promise<[RawReply, boolean]> {
    const connection = await RawConnection.open(server);
    const length = lines.length > 0 ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
    const head = [`PUT ${path} HTTP/1.1`, 'Host: x', ...length, ...lines];
    connection.send(`${head.join('\r\n')}\r\n\r\n${body}`);
    const reply = await connection.reply();
    if (reply.headers['connection'] === 'close') {
      await connection.closed();
      return [reply, false];
    }
    connection.get('/livez');
    const isKept = await connection.reply().then(
      ({ status }) => status === 200,
      () => false,
    );
    connection.destroy();
    return [reply, isKept];
  }

  for (const [status, isKept] of [
    [200, true],
    [302, true],
    [400, false],
    [503, false],
  ] as const)
    test(`the app's own ${status} ${isKept ? 'keeps' : 'ends'} the connection`, async () => {
      const [reply, kept] = await put(JSON.stringify({ status }));
      assert.deepEqual([reply.status, reply.body, kept], [status, 'told', isKept]);
    });

  test('an error ends the connection', async () => {
    const [reply, isKept] = await put('{"status":');
    assert.deepEqual([reply.status, isKept], [418, false]);
  });

  test("an answer of the dialect's own ends the connection", async () => {
    const [reply, isKept] = await put('', [], '/x/teapot');
    assert.deepEqual([reply.status, isKept], [418, false]);
  });

  test("a header of the dialect's own is left out of the app's headers", async () => {
    const body = { status: 200, headers: { 'X-DIALECT': 'mine', 'X-Other': 'other' } };
    const [{ headers }] = await put(JSON.stringify(body));
    assert.deepEqual([headers['x-dialect'], headers['x-other']], ['tiny', 'other']);
  });

  const chunks = (count: number): string => `400\r\n${'x'.repeat(1024)}\r\n`.repeat(count) + '0\r\n\r\n';
  for (const [what, body, lines, isKept] of [
    ['a little too large', 'x'.repeat(2 * MAX_BODY), [], true],
    ['far too large', 'x'.repeat(2 * MAX_BODY + 1), [], false],
    ['in chunks, a little too large', chunks(3), ['Transfer-Encoding: chunked'], true],
    ['in chunks, far too large', chunks(2000), ['Transfer-Encoding: chunked'], false],
  ] as const)
    test(`a body ${what} ${isKept ? 'keeps' : 'ends'} the connection`, async () => {
      assert.equal((await put(body, lines))[1], isKept);
    });
});
