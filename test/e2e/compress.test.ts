/** `--compress`: which answers are compressed, for whom, and that streams, slow clients and failures are as without. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { describe, test } from 'node:test';
import { brotliDecompressSync, createGunzip, gunzipSync } from 'node:zlib';
import { withOneRuntime } from '../helpers/runtimes.js';
import { eventually, fixture } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';
import { UnreadAnswer } from '../helpers/unread.js';

const PLAIN = { 'content-type': 'text/plain' };
const PAGE = 'https://app.example';

describe('with --compress', { timeout: 240_000 }, () => {
  const args = ['--compress', '--cors-origin', PAGE, '--stall-timeout', '2s', '--metrics'];
  const shared = shareHere(fixture('compressible.mjs'), { args });

  /** Sends one request; resolves with the answer before its body, as it comes over the wire. */
  async function open(
    input: unknown,
    accepted: string | null,
    { method = 'POST', path = '/' } = {},
  ): Promise<IncomingMessage> {
    const headers = {
      'content-type': 'application/json',
      ...(accepted !== null && { 'accept-encoding': accepted }),
    };
    const call = request(shared.server.url + path, { method, headers });
    call.on('error', () => {});
    call.end(method === 'POST' ? JSON.stringify(input) : undefined);
    const [answer] = (await once(call, 'response')) as [IncomingMessage];
    return answer;
  }

  async function bytesOf(answer: IncomingMessage): Promise<Buffer> {
    return Buffer.concat((await answer.toArray()) as Buffer[]);
  }

  for (const [accepted, coding, decode] of [
    ['gzip', 'gzip', gunzipSync],
    ['gzip, br', 'br', brotliDecompressSync],
  ] as const)
    test(`an answer to a client that accepts ${accepted} is in ${coding}`, async () => {
      const answer = await open({ length: 100_000, headers: { ...PLAIN, etag: '"e"' } }, accepted);
      const { headers } = answer;
      assert.equal(headers['content-encoding'], coding);
      assert.equal(headers['content-length'], undefined);
      assert.equal(headers.vary, 'Origin, Accept-Encoding');
      assert.equal(headers.etag, 'W/"e"');
      const bytes = await bytesOf(answer);
      assert.ok(bytes.length < 5000, `${bytes.length} bytes`);
      assert.equal(decode(bytes).toString(), 'banana '.repeat(14_286).slice(0, 100_000));
    });

  for (const [what, input, vary] of [
    ['shorter than 1 KiB', { length: 1023, headers: PLAIN }, 'Origin'],
    ['of bytes', { length: 5000, headers: { 'content-type': 'application/octet-stream' } }, 'Origin'],
    ['that is encoded already', { length: 5000, headers: { ...PLAIN, 'content-encoding': 'x' } }, 'Origin'],
    ['with no-transform', { length: 5000, headers: { ...PLAIN, 'cache-control': 'no-transform' } }, 'Origin'],
    ['204', { status: 204, headers: PLAIN }, 'Origin'],
    ['304', { status: 304, headers: PLAIN }, 'Origin'],
  ] as const)
    test(`an answer ${what} is left as it is`, async () => {
      const answer = await open(input, 'gzip, br');
      assert.deepEqual([answer.headers.vary, answer.headers['content-encoding'] ?? 'x'], [vary, 'x']);
      assert.equal((await bytesOf(answer)).length, 'length' in input ? input.length : 0);
    });

  test('a client that accepts nothing gets it as it is; caches learn that others do not', async () => {
    for (const accepted of [null, 'identity', 'br;q=0, gzip;q=0']) {
      const answer = await open({ length: 5000, headers: PLAIN }, accepted);
      assert.deepEqual(
        [answer.headers.vary, answer.headers['content-length'], answer.headers['content-encoding']],
        ['Origin, Accept-Encoding', '5000', undefined],
      );
      assert.equal((await bytesOf(answer)).length, 5000);
    }
  });

  test('a page of the server is compressed, and HEAD has its headers without a body', async () => {
    const page = await open(null, 'gzip', { method: 'GET', path: '/status' });
    assert.equal(page.headers['content-encoding'], 'gzip');
    assert.match(gunzipSync(await bytesOf(page)).toString(), /^\{.*\}$/s);
    const head = await open(null, 'gzip', { method: 'HEAD', path: '/status' });
    assert.deepEqual(
      [head.headers['content-encoding'], head.headers['content-length'], head.headers.vary],
      ['gzip', undefined, 'Origin, Accept-Encoding'],
    );
    assert.equal((await bytesOf(head)).length, 0);
  });

  test('answers on one connection come in order, compressed or not', async () => {
    const sizes = [100_000, 10, 3000];
    const answers = await Promise.all(sizes.map((length) => open({ length, headers: PLAIN }, 'gzip')));
    const lengths = answers.map(async (answer) => {
      const bytes = await bytesOf(answer);
      return answer.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes).length : bytes.length;
    });
    assert.deepEqual(await Promise.all(lengths), sizes);
  });

  test('an event is sent before the next one exists', async () => {
    const sse = { 'content-type': 'text/event-stream' };
    for (const coding of ['gzip', 'br']) {
      const answer = await open({ events: 3, until: `go ${coding}`, headers: sse }, coding);
      assert.equal(answer.headers['content-encoding'], coding);
      const [first] = (await once(answer, 'data')) as [Buffer];
      assert.ok(first.length > 0);
      if (coding === 'gzip') {
        const unzip = createGunzip();
        unzip.write(first);
        assert.equal(String((await once(unzip, 'data'))[0]), 'data: 0\n\n');
        unzip.end(Buffer.alloc(0)).on('error', () => {});
      }
      shared.cues.give(`go ${coding}`);
      const rest = await bytesOf(answer);
      const decode = coding === 'gzip' ? gunzipSync : brotliDecompressSync;
      assert.equal(decode(Buffer.concat([first, rest])).toString(), 'data: 0\n\ndata: 1\n\ndata: 2\n\n');
    }
  });

  test('a stream that fails breaks the connection without an end', async () => {
    const answer = await open({ events: 2, breaks: true, headers: PLAIN }, 'gzip');
    await assert.rejects(bytesOf(answer), { code: 'ECONNRESET' });
  });

  test('a client that leaves ends the stream, and nothing of it is held', async () => {
    const answer = await open({ events: 3, until: 'never', headers: PLAIN }, 'gzip');
    await once(answer, 'data');
    answer.destroy();
    await shared.server.until(({ model, unsent }) => model.inFlight === 0 && unsent.bytes === 0);
  });

  test('an answer that its client does not read is counted, and cut', async (t) => {
    const input = { length: 20_000_000, random: true, headers: PLAIN };
    const reader = await UnreadAnswer.ask(t, shared.server, {
      input,
      id: 'unread',
      acceptEncoding: 'gzip',
    });
    await shared.server.until(({ unsent }) => unsent.clients === 1 && unsent.bytes > 1_000_000);
    await eventually(
      async () => (await shared.server.status()).replies['SERVE_SLOW_READER'] === 1,
      60_000,
      () => 'it is not cut',
    );
    assert.equal((await reader.rest(20_000_000)).isOpen, false);
  });
});

withOneRuntime(({ app }) => {
  describe('without --compress', { timeout: 240_000 }, () => {
    const shared = shareHere(app('echoes'));

    test('nothing is compressed, and Vary is not there', async () => {
      const answer = await fetch(shared.server.url, {
        method: 'POST',
        body: JSON.stringify('b'.repeat(5000)),
        headers: { 'accept-encoding': 'gzip, br' },
      });
      assert.deepEqual([answer.headers.get('content-encoding'), answer.headers.get('vary')], [null, null]);
      assert.equal((await answer.text()).length, 5002);
    });
  });
});
