/** Outputs: streams, failures and limits; test/promises/outputs.test.ts has values, and the encoders' own tests all of them. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { errorOf } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { RawConnection } from '../helpers/raw-http.js';
import { FAILURES, STREAMS } from '../helpers/outputs.js';
import { withEachRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { call, fixture, type Answer, type Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };
const MAX_OUTPUT = 50_000;

type Get = (kind: string, headers?: Record<string, string>, more?: string) => Promise<Answer>;

function answerOf(
  server: Server,
  kind: string,
  headers: Record<string, string> = {},
  more = '',
): Promise<Answer> {
  return call(`${server.url}/?kind=${kind}${more}`, null, headers);
}

withEachRuntime(({ language, app }) => {
  describe("an app's output", LIMIT, () => {
    let server: Server;
    let worker: number | null;
    const cues = makeCues({ after });
    before(async () => {
      const args = ['--max-output', String(MAX_OUTPUT)];
      server = await startHere(app('answers'), { args, env: cues.env });
      const { model } = await server.until(({ state }) => state === 'ready');
      worker = model.workers[0]?.pid ?? null;
    });
    after(async () => {
      const { model } = await server.status();
      await server.stop();
      assert.equal(model.workers[0]?.pid, worker, 'one worker has answered all of this');
    });

    const get: Get = (...args) => answerOf(server, ...args);

    for (const [kind, accept, type, body] of STREAMS) {
      test(`${kind} for a client that accepts ${accept} streams as ${type}`, async () => {
        const answer = await get(kind, { accept });
        assert.deepEqual([answer.status, answer.text], [200, body]);
        assert.equal(answer.headers.get('content-type'), type);
        assert.equal(answer.headers.get('transfer-encoding'), 'chunked');
        assert.equal(answer.headers.get('content-length'), null);
        assert.equal(answer.headers.get('server-timing'), null, 'not known when the headers leave');
      });
    }

    for (const [kind, words] of FAILURES[language]) {
      test(`an app that ${kind} is a 500 without the app's words; the log has them, with the id`, async () => {
        const answer = await get(kind, { 'x-request-id': `failing-${kind}` });
        assert.equal(answer.status, 500);
        assert.deepEqual(errorOf(answer), {
          code: 'SERVE_INFERENCE_FAILED',
          message: 'The model failed on this call.',
          requestId: `failing-${kind}`,
          source: 'app',
          begun: true,
        });
        assert.ok(answer.headers.has('server-timing'));
        await server.untilPrinted(`failing-${kind}`);
        await server.untilPrinted(words);
      });
    }

    if (language === 'Python')
      test('the log has frames of the app alone', () => {
        assert.match(server.stderr(), /File ".*answers\.py"/);
        assert.doesNotMatch(server.stderr(), /File ".*banana_worker/);
      });

    for (const [kind, count, last] of [
      ['breaksMidway', 2, 'part 1;'],
      ['yieldsTooMuch', 1, '1\n'],
    ] as const) {
      test(`a stream that ${kind}: what came before arrives, then the connection breaks, never a clean end`, async () => {
        const connection = await RawConnection.open(server);
        connection.post('', [], `/?kind=${kind}`);
        await connection.closed();
        assert.match(connection.rest, /^HTTP\/1\.1 200 OK\r\n/);
        assert.ok(
          connection.rest.endsWith(`${last}\r\n`),
          'no last chunk: the client can tell that it was cut',
        );
        await assert.rejects(get(kind), 'fetch rejects');
      });

      test(`a stream that ${kind}, for a client without chunks: the connection is reset`, async () => {
        const connection = await RawConnection.open(server);
        const query = `kind=${kind}&behind=${count}&until=${kind} is read`; // a reset right behind data looks like an end
        connection.send(`POST /?${query.replaceAll(' ', '+')} HTTP/1.0\r\nContent-Length: 0\r\n\r\n`);
        await connection.received(last);
        cues.give(`${kind} is read`);
        assert.equal(await connection.closed(), 'reset');
      });
    }

    test('--max-output: an answer at the limit is whole, one byte more is a 500', async () => {
      const whole = await get('size', {}, `&bytes=${MAX_OUTPUT}`);
      assert.deepEqual([whole.status, whole.text.length], [200, MAX_OUTPUT]);
      const answer = await get('size', {}, `&bytes=${MAX_OUTPUT + 1}`);
      assert.equal(answer.status, 500);
      assert.equal(errorOf(answer).code, 'SERVE_OUTPUT_TOO_LARGE');
      assert.match(errorOf(answer).message, /50001 bytes; --max-output allows 50000/);
    });

    test('a stream may be longer than --max-output', async () => {
      assert.equal((await get('streamSize', {}, `&bytes=${10 * MAX_OUTPUT}`)).text.length, 10 * MAX_OUTPUT);
    });
  });
});

describe('answers that only JavaScript has', LIMIT, () => {
  let server: Server;
  before(async () => {
    server = await startHere(fixture('answers.ts'));
  });
  after(async () => {
    await server.stop();
  });

  const get: Get = (...args) => answerOf(server, ...args);

  test('a Blob is its bytes, with its own content type', async () => {
    const response = await fetch(`${server.url}/?kind=blob`, { method: 'POST' });
    assert.equal(response.headers.get('content-type'), 'image/png');
    assert.equal(Buffer.from(await response.arrayBuffer()).toString('hex'), '00ff');
  });

  test('a Response may have any status, with or without a body', async () => {
    const json = await get('responseJson');
    assert.deepEqual([json.status, json.text], [422, '{"a":1}']);
    const empty = await get('response204');
    assert.deepEqual([empty.status, empty.text, empty.headers.get('content-type')], [204, '', null]);
    const redirect = await call(`${server.url}/?kind=responseRedirect`, null, {}, { redirect: 'manual' });
    assert.deepEqual([redirect.status, redirect.headers.get('location')], [303, '/elsewhere']);
  });

  test('a Response cannot set headers that belong to the connection or to the caller', async () => {
    const { headers, text } = await get('responseOwnHeaders', { 'x-request-id': 'ours' });
    assert.deepEqual(
      [text, headers.get('content-length'), headers.get('x-request-id')],
      ['ours', '4', 'ours'],
    );
    assert.match(headers.get('server-timing') ?? '', /^db;dur=1, queue;dur=[\d.]+, run;dur=[\d.]+$/);
  });

  for (const kind of ['badHeader', 'badHeaderStream']) {
    test(`${kind}: a header that HTTP cannot carry is a 500 that names it, and the server lives on`, async () => {
      const connection = await RawConnection.open(server);
      connection.post('', [], `/?kind=${kind}`);
      const { statusLine, body } = await connection.reply();
      assert.equal(statusLine, 'HTTP/1.1 500 Internal Server Error');
      const { error } = JSON.parse(body) as { error: { code: string; message: string } };
      assert.equal(error.code, 'SERVE_OUTPUT_INVALID');
      assert.match(error.message, /response header is invalid: .*x-bad/);
      connection.post('', [], '/?kind=object');
      assert.equal((await connection.reply()).status, 200, 'on the same connection');
      connection.destroy();
    });
  }

  test('a Response that a stream throws before its first item is the answer', async () => {
    const answer = await get('streamThrowsResponse');
    assert.deepEqual([answer.status, answer.text], [404, 'not today']);
  });

  test('responseStream streams as text/plain', async () => {
    const { headers, text } = await get('responseStream');
    assert.deepEqual([headers.get('content-type'), text], ['text/plain', 'one two three']);
    assert.equal(headers.get('transfer-encoding'), 'chunked');
  });

  test('a stream that throws a Response late is cut', async () => {
    const connection = await RawConnection.open(server);
    connection.post('', [], '/?kind=streamThrowsResponseLate');
    await connection.closed();
    assert.ok(connection.rest.endsWith('part 1;\r\n'), connection.rest);
  });
});
