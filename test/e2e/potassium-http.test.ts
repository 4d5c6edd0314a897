/** Potassium over HTTP: who gets which status, what counts as a call, what becomes of an answer. */
import assert from 'node:assert/strict';
import { Packr } from 'msgpackr';
import { after, before, describe, test } from 'node:test';
import { errorOf } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { jobIdOf, post, potassiumStatus } from '../helpers/potassium.js';
import { RawConnection } from '../helpers/raw-http.js';
import { withEachRuntime, withOneRuntime, type Language } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import type { Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };
const JSON_TYPE = 'Content-Type: application/json';

interface Row {
  readonly what: string;
  readonly method?: string;
  readonly path?: string;
  readonly headers?: readonly string[];
  readonly body?: string;
  readonly status: number;
  readonly code?: string;
  readonly allow?: string;
  /** Whether it moves `sequence_number`. */
  readonly counts: boolean;
}

const ROWS: readonly Row[] = [
  { what: 'JSON', headers: [JSON_TYPE], body: '{"a":1}', status: 200, counts: true },
  {
    what: 'bad JSON',
    headers: [JSON_TYPE],
    body: '{"a":',
    status: 400,
    code: 'SERVE_BAD_BODY',
    counts: true,
  },
  { what: 'an empty body', headers: [JSON_TYPE], status: 400, code: 'SERVE_BAD_BODY', counts: true },
  { what: 'no content type', body: '{}', status: 400, code: 'SERVE_BAD_REQUEST', counts: true },
  {
    what: 'another content type',
    headers: ['Content-Type: text/plain'],
    body: '{}',
    status: 400,
    code: 'SERVE_BAD_REQUEST',
    counts: true,
  },
  {
    what: 'JSON of another kind',
    headers: ['Content-Type: application/ld+json'],
    body: '1',
    status: 200,
    counts: true,
  },
  {
    what: 'no such route',
    path: '/nope',
    headers: [JSON_TYPE],
    body: '{}',
    status: 404,
    code: 'SERVE_NOT_FOUND',
    counts: true,
  },
  {
    what: 'a slash too many',
    path: '/work/',
    headers: [JSON_TYPE],
    body: '{}',
    status: 404,
    code: 'SERVE_NOT_FOUND',
    counts: true,
  },
  { what: 'a POST to the status', path: '/_k/status', status: 404, code: 'SERVE_NOT_FOUND', counts: true },
  { what: 'a POST to a job', path: '/_k/jobs/5', status: 404, code: 'SERVE_NOT_FOUND', counts: true },
  { what: 'a warm-up', path: '/_k/warmup', status: 200, counts: true },
  { what: 'a warm-up by GET', method: 'GET', path: '/_k/warmup', status: 200, counts: false },
  {
    what: 'a body that is too large',
    headers: [JSON_TYPE],
    body: `"${'x'.repeat(2048)}"`,
    status: 413,
    code: 'SERVE_BODY_TOO_LARGE',
    counts: true,
  },
  {
    what: 'a handler that throws',
    path: '/answer',
    headers: [JSON_TYPE],
    body: '"a throw"',
    status: 500,
    code: 'SERVE_INFERENCE_FAILED',
    counts: true,
  },
  { what: 'a background call', path: '/later', headers: [JSON_TYPE], body: '{}', status: 200, counts: true },
  { what: 'the status', method: 'GET', path: '/_k/status', status: 200, counts: false },
  { what: 'the status by its older name', method: 'GET', path: '/__status__', status: 200, counts: false },
  {
    what: 'GET of a route',
    method: 'GET',
    path: '/work',
    status: 405,
    allow: 'POST, OPTIONS',
    code: 'SERVE_METHOD_NOT_ALLOWED',
    counts: false,
  },
  {
    what: 'GET of no route',
    method: 'GET',
    path: '/nope',
    status: 404,
    code: 'SERVE_NOT_FOUND',
    counts: false,
  },
  {
    what: 'PUT to the warm-up',
    method: 'PUT',
    path: '/_k/warmup',
    status: 405,
    allow: 'GET, HEAD, POST',
    code: 'SERVE_METHOD_NOT_ALLOWED',
    counts: false,
  },
  {
    what: 'POST to the probe',
    path: '/healthcheck',
    status: 405,
    allow: 'GET, HEAD',
    code: 'SERVE_METHOD_NOT_ALLOWED',
    counts: false,
  },
  {
    what: 'an unknown job',
    method: 'GET',
    path: '/_k/jobs/nope',
    status: 404,
    code: 'SERVE_NOT_FOUND',
    counts: false,
  },
  {
    what: 'OPTIONS of a route',
    method: 'OPTIONS',
    path: '/work',
    status: 200,
    allow: 'POST, OPTIONS',
    counts: false,
  },
  {
    what: 'OPTIONS of no route',
    method: 'OPTIONS',
    path: '/nope',
    status: 404,
    code: 'SERVE_NOT_FOUND',
    counts: false,
  },
];

/** Kinds of answers; for each the status, the content type and the text that the caller gets. */
const ANSWERS = [
  ['a status', 201, 'application/json', '{"made":true}'],
  ['headers', 200, 'application/json', '1'],
  ['not ASCII', 200, 'application/json', '"é漢"'],
  ['no number', 200, 'application/json', '[null,null,1]'],
  ['text', 200, 'text/plain; charset=utf-8', 'text'],
  ['typed bytes', 200, 'text/html', '<b>'],
  ['chunks', 200, 'application/octet-stream', 'é\x01c'],
  ['late chunks', 203, 'application/octet-stream', 'ab'],
  ['rewritten', 200, 'application/json', '{"was":{"a":1},"none":null}'],
  ['empty', 200, null, ''],
  ['an empty status', 204, null, ''],
  ['JSON of a type set afterwards', 200, 'application/problem+json', '{"title":"x"}'],
] as const;

/** Answers that only JavaScript has. */
const OF_JAVASCRIPT_ALONE = [
  ['a long integer', 500, 'application/json', /SERVE_OUTPUT_INVALID/],
  ['a returned Blob', 200, 'image/png', /^bytes$/],
  ['Blob chunks', 202, 'image/gif', /^bytes$/],
  ["the web's Response", 203, 'text/html', /^web$/],
  ['a thrown Response', 404, 'application/json', /^\{"message":"no such model"\}$/],
  ['a Response thrown late', 404, 'text/plain; charset=utf-8', /^late$/],
  ["the web's Response, thrown", 402, 'application/json', /^\{"left":0\}$/],
] as const;

const FAILURES = [
  ['nothing', 'SERVE_INFERENCE_FAILED'],
  ['an object', 'SERVE_INFERENCE_FAILED'],
  ['a wrong body', 'SERVE_INFERENCE_FAILED'],
  ['a throw', 'SERVE_INFERENCE_FAILED'],
  ['a throw in the first chunk', 'SERVE_INFERENCE_FAILED'],
  ['a returned error', 'SERVE_INFERENCE_FAILED'],
  ['no JSON', 'SERVE_OUTPUT_INVALID'],
] as const;

/** The log lines of the errors, with the place in the app. */
const LOGGED: Readonly<Record<Language, readonly RegExp[]>> = {
  TypeScript: [
    /secret detail[^\n]*\n[\s\S]*potassium\.mjs:\d+/,
    /secret detail, returned[\s\S]*potassium\.mjs:\d+/,
    /output\.rows\[0\] is a Map/,
  ],
  Python: [
    /potassium-app\.py", line \d+, in raises\n[\s\S]*ValueError: secret detail(?!,)/,
    /ValueError: secret detail, returned/,
    /output\["rows"\]\[0\] is an object/,
  ],
};

withEachRuntime(({ language, potassium }) => {
  describe('a Potassium app over HTTP', LIMIT, () => {
    let server: Server;
    before(async () => {
      const args = ['--max-body', '2kb'];
      server = await startHere(potassium(), { args, env: cues.env });
      await server.until(({ state }) => state === 'ready');
    });
    after(async () => {
      await server.stop();
    });
    const cues = makeCues({ after });

    for (const { what, method = 'POST', path = '/', headers = [], body = '', ...expected } of ROWS) {
      test(`${what}: ${method} ${path} is ${expected.status}${expected.counts ? ' and counts' : ''}`, async () => {
        const before = (await potassiumStatus(server)).sequence_number;
        const length = method === 'POST' ? [`Content-Length: ${body.length}`] : [];
        const lines = [
          `${method} ${path} HTTP/1.1`,
          'Host: x',
          'X-Banana-Request-Id: b-1',
          ...length,
          ...headers,
        ];
        const reply = await RawConnection.ask(server, `${lines.join('\r\n')}\r\n\r\n${body}`);
        assert.equal(reply.status, expected.status, reply.body);
        assert.equal(reply.headers['allow'], expected.allow);
        assert.equal(reply.headers['x-banana-request-id'], 'b-1', 'the id is echoed');
        assert.equal(reply.headers['x-request-id'], 'b-1', 'and is the id of the call');
        if (expected.code !== undefined) {
          const { error } = JSON.parse(reply.body) as { error: { code: string; requestId: string } };
          assert.deepEqual([error.code, error.requestId], [expected.code, 'b-1']);
          assert.equal(reply.headers['content-type'], 'application/json');
        }
        const after = (await potassiumStatus(server)).sequence_number;
        assert.equal(after - before, expected.counts ? 1 : 0, 'sequence_number');
      });
    }

    test('HEAD of the status is a GET without its body, on both paths', async () => {
      for (const path of ['/_k/status', '/__status__']) {
        const reply = await fetch(server.url + path, { method: 'HEAD' });
        assert.deepEqual([reply.status, await reply.text()], [200, '']);
      }
    });

    test('the warm-up answers that it is warm, OPTIONS has no body', async () => {
      for (const method of ['GET', 'POST']) {
        const reply = await fetch(`${server.url}/_k/warmup`, { method });
        assert.deepEqual(await reply.json(), { warm: true });
      }
      const options = await fetch(`${server.url}/work`, { method: 'OPTIONS' });
      assert.deepEqual([options.headers.get('content-length'), await options.text()], ['0', '']);
    });

    for (const json of [null, 0, false, 'text', [1, 2], { a: 'é' }]) {
      test(`${JSON.stringify(json)} reaches the handler as it is`, async () => {
        assert.deepEqual((await post(server, '/', json)).json<{ json: unknown }>().json, json);
      });
    }

    test('a handler sees the id, headers by any spelling, the query and the body', async () => {
      const answer = await post(server, '/?q=a%20b', 'é', 'id-7', { 'X-Custom': 'yes' });
      const { calls: _calls, pid: _pid, ...seen } = answer.json<Record<string, unknown>>();
      assert.deepEqual(seen, { id: 'id-7', json: 'é', custom: 'yes', query: 'a b', bytes: 4 });
    });

    test('the context lives on from call to call', async () => {
      const callsOf = async (): Promise<number> =>
        (await post(server, '/', 1)).json<{ calls: number }>().calls;
      const before = await callsOf();
      assert.equal(await callsOf(), before + 1);
    });

    test('a body in chunks is taken', async () => {
      const head = ['POST / HTTP/1.1', 'Host: x', JSON_TYPE, 'Transfer-Encoding: chunked'].join('\r\n');
      const reply = await RawConnection.ask(server, `${head}\r\n\r\n4\r\n{"a"\r\n3\r\n:1}\r\n0\r\n\r\n`);
      assert.equal(reply.status, 200, reply.body);
      assert.deepEqual((JSON.parse(reply.body) as { json: unknown }).json, { a: 1 });
    });

    for (const path of ['/answer', '/late-answer'])
      for (const [kind, status, contentType, text] of ANSWERS) {
        test(`${path} with ${kind} is ${status}, ${contentType ?? 'no content type'}`, async () => {
          const answer = await post(server, path, kind);
          assert.deepEqual(
            [answer.status, answer.headers.get('content-type'), answer.text],
            [status, contentType, text],
          );
          const isStream = kind.endsWith('chunks');
          assert.equal(answer.headers.get('transfer-encoding'), isStream ? 'chunked' : null);
        });
      }

    if (language === 'TypeScript')
      for (const [kind, status, contentType, text] of OF_JAVASCRIPT_ALONE)
        test(`${kind} is an answer, too`, async () => {
          const answer = await post(server, '/answer', kind);
          assert.deepEqual([answer.status, answer.headers.get('content-type')], [status, contentType]);
          assert.match(answer.text, text);
        });

    for (const [kind, status, length] of [
      ['204 with a body', 204, null],
      ['205 with JSON', 205, '0'],
      ['205 with chunks', 205, '0'],
      ['304 with a body', 304, null],
    ] as const) {
      test(`${kind} has no content, and the connection goes on`, async (t) => {
        const connection = await RawConnection.open(server);
        t.after(() => connection.destroy());
        connection.post(JSON.stringify(kind), [JSON_TYPE, 'X-Request-Id: none'], '/answer');
        connection.post('1', [JSON_TYPE, 'X-Request-Id: next'], '/');
        await connection.received('"id":"next"');
        const [head = '', next = ''] = connection.rest.split('\r\n\r\n');
        assert.match(head, new RegExp(`^HTTP/1.1 ${status} `));
        assert.equal(/^Content-Length: (.*)$/m.exec(head)?.[1] ?? null, length);
        assert.doesNotMatch(head, /Transfer-Encoding/i);
        assert.match(next, /^HTTP\/1.1 200 OK/, 'nothing between the two');
      });
    }

    test('bytes come as they are', async () => {
      const init = { method: 'POST', body: '"bytes"', headers: { 'content-type': 'application/json' } };
      const response = await fetch(`${server.url}/answer`, init);
      assert.equal(response.headers.get('content-type'), 'application/octet-stream');
      assert.deepEqual([...new Uint8Array(await response.arrayBuffer())], [1, 2, 255]);
    });

    test('headers of a Response are kept, repeated ones too', async () => {
      const { headers } = await post(server, '/answer', 'headers');
      assert.deepEqual([headers.get('x-model'), headers.get('x-many')], ['m', 'a, b']);
    });

    test('JSON is ASCII for a Banana client, and UTF-8 for others', async () => {
      assert.equal((await post(server, '/answer', 'not ASCII', 'id')).text, String.raw`"\u00e9\u6f22"`);
      const withKey = await post(server, '/answer', 'not ASCII', undefined, { 'X-Banana-Api-Key': 'k' });
      assert.equal(withKey.text, String.raw`"\u00e9\u6f22"`);
      assert.equal((await post(server, '/answer', 'not ASCII')).text, '"é漢"');
    });

    for (const path of ['/answer', '/late-answer'])
      for (const [kind, code] of FAILURES) {
        test(`${path} with ${kind} is 500 ${code}, its detail in the log alone`, async () => {
          const answer = await post(server, path, kind, 'failing');
          assert.deepEqual([answer.status, errorOf(answer).code], [500, code]);
          assert.equal(errorOf(answer).requestId, 'failing');
          assert.doesNotMatch(answer.text, /secret|potassium\.mjs|potassium-app/);
        });
      }

    test('why a handler failed is in the log, with its stack', async () => {
      for (const line of LOGGED[language]) await server.untilPrinted(line);
      await server.untilPrinted(/Potassium Response object not returned/);
    });

    test('a generator that throws breaks the answer off, and the server is available again', async () => {
      await assert.rejects(post(server, '/answer', 'a throw after a chunk'));
      assert.equal((await post(server, '/', 1)).status, 200);
      assert.equal((await potassiumStatus(server)).gpu_available, true);
    });

    test('a raw route takes bytes, MessagePack, forms, JSON and nothing', async () => {
      const send = async (body: Exclude<RequestInit['body'], undefined>, type?: string): Promise<unknown> => {
        const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type };
        const reply = await fetch(`${server.url}/raw`, { method: 'POST', body, headers });
        return ((await reply.json()) as { json: unknown }).json;
      };
      assert.equal(await send(new Uint8Array([1, 2]), 'application/octet-stream'), 'bytes');
      const packed = new Packr({ useRecords: false }).pack({ a: 1 });
      assert.deepEqual(await send(new Uint8Array(packed), 'application/msgpack'), { a: 1 });
      const form = new FormData();
      form.set('field', 'value');
      assert.deepEqual(await send(form), { field: 'value' });
      assert.deepEqual(await send('{"a":1}', 'application/json'), { a: 1 });
      assert.equal(await send(null), null);
    });

    test('a route gets forms and text if it asks for them, each for itself', async () => {
      const form = new URLSearchParams([
        ['a', '1'],
        ['a', '2'],
        ['b', 'x y'],
      ]);
      const send = (path: string, body: string | URLSearchParams): Promise<globalThis.Response> =>
        fetch(`${server.url}${path}`, { method: 'POST', body }); // fetch adds the type of the body
      assert.deepEqual(await (await send('/forms', form)).json(), { json: { a: ['1', '2'], b: 'x y' } });
      assert.deepEqual(await (await send('/text', '{"a"')).json(), { json: '{"a"' });
      for (const [path, body, code, said] of [
        ['/text', form, 'SERVE_BAD_BODY', /`forms(: true|=True)`/],
        ['/forms', 'hello', 'SERVE_BAD_BODY', /`text(: true|=True)`/],
        ['/raw', form, 'SERVE_BAD_BODY', /`forms(: true|=True)`/],
        ['/', form, 'SERVE_BAD_REQUEST', /`forms`/],
      ] as const) {
        const refusal = await send(path, body);
        assert.equal(refusal.status, 400, path);
        const { error } = (await refusal.json()) as { error: { code: string; message: string } };
        assert.equal(error.code, code, path);
        assert.match(error.message, said);
      }
    });

    test('a handler call waits behind a background job, and a warm-up does not', async () => {
      const job = await post(server, '/later', { until: 'background may end' }, 'slow');
      assert.match(jobIdOf(job), /^\w{8,}$/);
      await cues.untilNoted('begun slow');
      const waiting = post(server, '/work', {}, 'behind');
      await server.until(({ model }) => model.queue.waiting + model.inFlight === 2);
      assert.equal((await post(server, '/_k/warmup', {})).status, 200);
      cues.give('background may end');
      assert.equal((await waiting).status, 200);
      const order = cues.notes().filter((line) => / (slow|behind)$/.test(line));
      assert.deepEqual(order, ['begun slow', 'done slow', 'begun behind', 'done behind']);
    });
  });
});

withOneRuntime(({ potassium }) => {
  test('with keys, a client without one gets 401 with its id echoed, which counts too', LIMIT, async (t) => {
    const key = 'correct-horse-battery-staple';
    const env = { ...makeCues(t).env, BANANA_API_KEY: key };
    const server = await startHere(potassium(), { t, env });
    const sequence = async (): Promise<number> => {
      const headers = { 'x-banana-api-key': key };
      const reply = await fetch(`${server.url}/_k/status`, { headers });
      return ((await reply.json()) as { sequence_number: number }).sequence_number;
    };
    const stranger = await post(server, '/', {}, 'stranger');
    assert.deepEqual([stranger.status, stranger.headers.get('x-banana-request-id')], [401, 'stranger']);
    assert.equal(await sequence(), 1);
    assert.equal((await post(server, '/', {}, 'friend', { 'x-banana-api-key': key })).status, 200);
    assert.equal(await sequence(), 2);
    await server.stop();
  });
});
