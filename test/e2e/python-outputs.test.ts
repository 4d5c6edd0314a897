/** What a client gets for what an app in Python returns. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Unpackr } from 'msgpackr';
import { errorOf } from '../helpers/ask.js';
import { needs } from '../helpers/needs.js';
import { RawConnection } from '../helpers/raw-http.js';
import { ROOT, call, startServer, type Answer, type Server } from '../helpers/server.js';

const APPS = `${ROOT}test/fixtures/python-apps`;
const LIMIT = { timeout: 60_000 };

const unpackr = new Unpackr({ useRecords: false, mapsAsObjects: true, int64AsType: 'number' });

const JSON_ROWS: readonly (readonly [kind: string, text: string])[] = [
  ['object', '{"a":[1,"two",null,true],"b":{"c":1.5}}'],
  ['list', '[{"label":"x"}]'],
  ['text', '"text"'],
  ['unicode', '"ü\u{1F34C}"'],
  ['none', 'null'],
  ['zero', '0'],
  ['large', '1180591620717411303424'],
  ['notFinite', '{"nan":null,"inf":[null,null]}'],
  ['tuple', '[1,[2,3]]'],
  ['set', '[1,2,3]'],
  ['data', '{"label":"cat","score":"red"}'],
  ['named', '{"at":"2020-01-02T00:00:00+00:00","path":"/a","id":"00000000-0000-0000-0000-000000000001"}'],
  ['nested', '{"bytes":[1,2]}'],
  ['later', '"later"'],
];

const SSE = 'text/event-stream';
const NDJSON = 'application/x-ndjson';

const STREAMS: readonly (readonly [kind: string, accept: string, type: string, body: string])[] = [
  ['numbers', '*/*', NDJSON, '1\n{"two":2}\nthree'],
  ['numbers', NDJSON, NDJSON, '1\n{"two":2}\n"three"\n'],
  ['numbers', SSE, SSE, 'data: 1\n\ndata: {"two":2}\n\ndata: three\n\n'],
  ['laterNumbers', '*/*', NDJSON, '1\n2\n'],
  ['lines', SSE, SSE, 'data: two\ndata: lines\n\ndata: more\n\n'],
  ['lines', '*/*', 'text/plain; charset=utf-8', 'two\nlinesmore'],
  ['pieces', '*/*', 'application/octet-stream', '\u0001\u0002'],
  ['empty', '*/*', 'application/octet-stream', ''],
];

const MISTAKES: readonly (readonly [kind: string, message: string])[] = [
  ['foo', 'output["scores"][3] is a Foo; return what it holds as a dict, a list, text or a number.'],
  ['class', 'output["model"] is the class Foo; return an instance, as a dict.'],
  ['forgotten', 'output["result"] is a coroutine; await it.'],
  ['generator', 'output["rows"] is a generator; return list(...) of it.'],
  ['function', 'output[0] is a function; call it, or leave it out.'],
  ['cycle', 'output["list"][0]["back"] refers back to an object that contains it.'],
  ['tupleKey', 'output["a"] has a tuple as a key; make it text.'],
];

const FAILURES: readonly (readonly [kind: string, log: RegExp])[] = [
  ['raises', /Traceback[^]*answers\.py", line \d+, in raises\n[^]*ValueError: secret path \/etc\/model/],
  ['raisesChain', /ValueError: secret path[^]*direct cause of[^]*RuntimeError: no answer/],
  ['raisesHostile', /Hostile/],
  ['returnsException', /KeyError: 'returned and not raised'/],
  ['breaksAtOnce', /ValueError: the stream broke/],
];

describe("a Python app's output", { ...LIMIT, skip: needs('python3') }, () => {
  let server: Server;
  let worker: number | null;
  before(async () => {
    server = await startServer(`${APPS}/answers.py`, { args: ['--max-output', '50000'] });
    const { model } = await server.until(({ state }) => state === 'ready');
    worker = model.workers[0]?.pid ?? null;
  });
  after(async () => {
    const { model } = await server.status();
    await server.stop();
    assert.equal(model.workers[0]?.pid, worker, 'one worker has answered all of this');
  });

  const get = (kind: string, headers: Record<string, string> = {}): Promise<Answer> =>
    call(`${server.url}/?kind=${kind}`, null, headers);

  test('values are JSON, whole and timed', async () => {
    for (const [kind, text] of JSON_ROWS) {
      const { status, headers, text: given } = await get(kind);
      assert.deepEqual([status, given], [200, text]);
      assert.equal(headers.get('content-type'), 'application/json');
      assert.equal(headers.get('content-length'), String(Buffer.byteLength(text)));
      assert.match(headers.get('server-timing') ?? '', /^queue;dur=[\d.]+, run;dur=[\d.]+$/);
    }
  });

  test('values are MessagePack if the client accepts that', async () => {
    for (const [kind, value] of [
      ['object', { a: [1, 'two', null, true], b: { c: 1.5 } }],
      ['nested', { bytes: Buffer.from([1, 2]) }],
      ['data', { label: 'cat', score: 'red' }],
    ] as const) {
      const response = await fetch(`${server.url}/?kind=${kind}`, {
        method: 'POST',
        headers: { accept: 'application/msgpack' },
      });
      assert.equal(response.headers.get('content-type'), 'application/msgpack');
      assert.deepEqual(unpackr.unpack(Buffer.from(await response.arrayBuffer())), value);
    }
    assert.equal(errorOf(await get('large', { accept: 'application/msgpack' })).code, 'SERVE_OUTPUT_INVALID');
  });

  test('bytes leave as they are, whatever the client accepts', async () => {
    for (const kind of ['bytes', 'bytearray', 'memoryview', 'nothing']) {
      const response = await fetch(`${server.url}/?kind=${kind}`, {
        method: 'POST',
        headers: { accept: 'application/msgpack' },
      });
      const hex = Buffer.from(await response.arrayBuffer()).toString('hex');
      const type = response.headers.get('content-type');
      assert.deepEqual([type, hex], ['application/octet-stream', kind === 'nothing' ? '' : '0001feff']);
    }
  });

  test('iterators and generators stream, in the form that the client asks for', async () => {
    for (const [kind, accept, type, body] of STREAMS) {
      const answer = await get(kind, { accept });
      assert.deepEqual([answer.status, answer.text], [200, body]);
      assert.equal(answer.headers.get('content-type'), type);
      assert.equal(answer.headers.get('transfer-encoding'), 'chunked');
    }
  });

  test('what cannot be encoded is a 500 that names its place', async () => {
    for (const [kind, message] of MISTAKES) {
      for (const [accept, format] of [
        ['*/*', 'JSON'],
        ['application/msgpack', 'MessagePack'],
      ] as const) {
        const answer = await get(kind, { accept });
        const { code, source, message: said } = errorOf(answer);
        assert.deepEqual([answer.status, code, source], [500, 'SERVE_OUTPUT_INVALID', 'app']);
        assert.equal(said, `The output is not ${format}: ${message}`);
      }
    }
  });

  test("an app that raises is a 500 without the app's words; the log has them, with the id", async () => {
    for (const [kind, words] of FAILURES) {
      const answer = await get(kind, { 'x-request-id': `failing-${kind}` });
      assert.equal(answer.status, 500);
      const { code, message, requestId } = errorOf(answer);
      assert.deepEqual(
        [code, message, requestId],
        ['SERVE_INFERENCE_FAILED', 'The model failed on this call.', `failing-${kind}`],
      );
      await server.untilPrinted(`failing-${kind}`);
      await server.untilPrinted(words);
    }
    assert.doesNotMatch(server.stderr(), /File ".*banana_worker/, 'frames of the app alone');
  });

  test('a stream that breaks is cut, and never ends cleanly', async () => {
    for (const [kind, last] of [
      ['breaksMidway', 'part 1;'],
      ['yieldsFoo', '1\n'],
    ] as const) {
      const connection = await RawConnection.open(server);
      connection.post('', [], `/?kind=${kind}`);
      await connection.closed();
      assert.match(connection.rest, /^HTTP\/1\.1 200 OK\r\n/);
      assert.ok(connection.rest.endsWith(`${last}\r\n`), connection.rest);
    }
  });

  test('--max-output bounds an answer', async () => {
    const answer = await get('size');
    assert.deepEqual([answer.status, errorOf(answer).code], [500, 'SERVE_OUTPUT_TOO_LARGE']);
  });
});

test(
  'arrays and scalars of numpy are JSON, and MessagePack',
  { ...LIMIT, skip: needs('python3-numpy') },
  async (t) => {
    const server = await startServer(`${APPS}/answers.py`, { t, args: ['--python', '/usr/bin/python3'] });
    await server.until(({ state }) => state === 'ready');
    assert.equal((await call(`${server.url}/?kind=array`, null, {})).text, '{"scores":[0.5,null],"label":3}');
    assert.equal((await call(`${server.url}/?kind=arrayAlone`, null, {})).text, '[[0,2],[3,5]]');
    const headers = { accept: 'application/msgpack' };
    const response = await fetch(`${server.url}/?kind=arrayAlone`, { method: 'POST', headers });
    assert.deepEqual(unpackr.unpack(Buffer.from(await response.arrayBuffer())), [
      [0, 2],
      [3, 5],
    ]);
    await server.stop();
  },
);
