/** Bodies that come compressed are the app's as if they had not; what cannot be decoded is refused, and swells no memory. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { errorOf } from '../helpers/ask.js';
import { RawConnection } from '../helpers/raw-http.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { call, type Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };
const MAX_BODY = 100 * 1024;
const JSON_TYPE = { 'content-type': 'application/json' };

withOneRuntime(({ app }) => {
  describe('compressed bodies', LIMIT, () => {
    let server: Server;
    before(async () => {
      server = await startHere(app('describes-input'), { args: ['--max-body', '100kb'] });
      await server.until(({ state }) => state === 'ready');
    });
    after(async () => {
      const { model } = await server.status();
      await server.stop();
      assert.deepEqual([model.queue.arriving, model.queue.bytes], [0, 0], 'every place was given back');
    });

    const post = (body: Uint8Array, coding: string): ReturnType<typeof call> =>
      call(server.url, body, { ...JSON_TYPE, 'content-encoding': coding });

    for (const [coding, body] of [
      ['gzip', gzipSync('{"a":1}')],
      ['X-GZIP', gzipSync('{"a":1}')],
      ['deflate', deflateSync('{"a":1}')],
      ['gzip, deflate', deflateSync(gzipSync('{"a":1}'))],
      ['identity', Buffer.from('{"a":1}')],
    ] as const) {
      test(`Content-Encoding: ${coding} is decoded`, async () => {
        const answer = await post(body, coding);
        assert.equal(answer.status, 200, answer.text);
        assert.deepEqual(answer.json<{ input: unknown }>().input, { a: 1 });
      });
    }

    test('Transfer-Encoding: gzip, chunked is decoded, and the connection lives on', async () => {
      const body = gzipSync('{"a":1}');
      const connection = await RawConnection.open(server);
      for (let i = 0; i < 2; i += 1) {
        connection.send('POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: gzip, chunked\r\n\r\n');
        for (const byte of body) connection.send(Buffer.from([0x31, 0x0d, 0x0a, byte, 0x0d, 0x0a]));
        connection.send('0\r\n\r\n');
        const reply = await connection.reply();
        assert.equal(reply.status, 200, reply.body);
        assert.deepEqual((JSON.parse(reply.body) as { input: unknown }).input, { a: 1 });
      }
      connection.destroy();
    });

    test('an unknown coding is 415, which lists the known ones', async () => {
      for (const [coding, body] of [
        ['br', brotliCompressSync('{"a":1}')],
        ['gzip, gzip, gzip, gzip', gzipSync('{}')],
      ] as const) {
        const answer = await post(body, coding);
        assert.deepEqual([answer.status, errorOf(answer).code], [415, 'SERVE_UNSUPPORTED_CODING']);
        assert.equal(answer.headers.get('accept-encoding'), 'gzip, deflate');
      }
    });

    test('damaged data is 400, and speaks of gzip', async () => {
      for (const body of [Buffer.from('{"a":1}'), gzipSync('{"a":1}').subarray(0, 20)]) {
        const answer = await post(body, 'gzip');
        assert.deepEqual([answer.status, errorOf(answer).code], [400, 'SERVE_BAD_BODY']);
        assert.match(errorOf(answer).message, /^The body is not valid gzip: /);
      }
    });

    test('--max-body counts decoded bytes: at the limit it is taken, above it 413', async () => {
      const text = (length: number): Buffer => gzipSync(JSON.stringify('x'.repeat(length - 2)));
      assert.equal((await post(text(MAX_BODY), 'gzip')).status, 200);
      for (const length of [MAX_BODY + 1, 90_000_000]) {
        const answer = await post(text(length), 'gzip');
        assert.deepEqual([answer.status, errorOf(answer).code], [413, 'SERVE_BODY_TOO_LARGE']);
      }
    });

    test('a body at the gateway may come compressed', async () => {
      const body = gzipSync(JSON.stringify({ modelInputs: { a: 1 } }));
      const headers = { 'content-encoding': 'gzip' };
      const answer = await call(`${server.url}/start/v4/`, body, headers);
      const { modelOutputs } = answer.json<{ modelOutputs: { input: unknown }[] }>();
      assert.deepEqual(modelOutputs[0]?.input, { a: 1 });
      const refused = await call(`${server.url}/start/v4/`, body, { 'content-encoding': 'br' });
      assert.equal(refused.json<{ code: string }>().code, 'SERVE_UNSUPPORTED_CODING');
    });
  });

  test('the app does not see what a body was compressed with', LIMIT, async (t) => {
    const server = await startHere(app('tells-context'), { t });
    const headers = { ...JSON_TYPE, 'content-encoding': 'gzip', 'x-other': 'kept' };
    const answer = await call(server.url, gzipSync('{}'), headers);
    const seen = answer.json<{ headers: Record<string, string> }>().headers;
    assert.deepEqual(
      [seen['x-other'], seen['content-encoding'], seen['content-length']],
      ['kept', undefined, undefined],
    );
    await server.stop();
  });
});
