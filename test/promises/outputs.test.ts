/** The answer of a call, by the value that the app returns or throws. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { unpack } from 'msgpackr';
import { errorOf } from '../helpers/ask.js';
import { STREAMS } from '../helpers/outputs.js';
import { RawConnection } from '../helpers/raw-http.js';
import { call, fixture, type Answer } from '../helpers/server.js';
import { shareServer } from '../helpers/shared-server.js';

describe('the output of an app', { timeout: 240_000 }, () => {
  const shared = shareServer(fixture('answers.ts'), { args: ['--max-output', '50kb'] });

  const get = (kind: string, headers: Record<string, string> = {}): Promise<Answer> =>
    call(`${shared.server.url}/?kind=${kind}`, null, headers);

  for (const [kind, text] of [
    ['object', '{"a":[1,"two",null,true],"b":{"c":1.5}}'],
    ['string', '"text"'],
    ['unicode', '"ü\u{1F34C}\u2028"'],
    ['undefined', 'null'],
    ['promise', '"later"'],
    ['notFinite', '{"nan":null,"inf":[null,null]}'],
  ] as const)
    test(`${kind} is answered as JSON: ${text}`, async () => {
      const answer = await get(kind);
      assert.deepEqual([answer.status, answer.text], [200, text]);
      assert.equal(answer.headers.get('content-type'), 'application/json');
      assert.equal(answer.headers.get('content-length'), String(Buffer.byteLength(text)));
    });

  test('a client that accepts MessagePack gets MessagePack', async () => {
    const headers = { accept: 'application/msgpack' };
    const response = await fetch(`${shared.server.url}/?kind=object`, { method: 'POST', headers });
    assert.equal(response.headers.get('content-type'), 'application/msgpack');
    assert.deepEqual(unpack(Buffer.from(await response.arrayBuffer())), {
      a: [1, 'two', null, true],
      b: { c: 1.5 },
    });
  });

  test('bytes are answered as they are', async () => {
    const response = await fetch(`${shared.server.url}/?kind=uint8array`, { method: 'POST' });
    assert.equal(response.headers.get('content-type'), 'application/octet-stream');
    assert.equal(Buffer.from(await response.arrayBuffer()).toString('hex'), '0001feff');
  });

  test('a Response keeps its status, its headers and its body', async () => {
    const { status, headers, text } = await get('response');
    assert.deepEqual([status, text], [201, '<b>hi</b>']);
    assert.deepEqual([headers.get('content-type'), headers.get('x-model')], ['text/html', 'm']);
    assert.deepEqual(headers.getSetCookie(), ['a=1', 'b=2; Path=/']);
  });

  for (const [kind, accept, type, body] of STREAMS)
    test(`a stream of ${kind} for a client that accepts ${accept} is ${type}`, async () => {
      const answer = await get(kind, { accept });
      assert.deepEqual([answer.status, answer.text], [200, body]);
      assert.equal(answer.headers.get('content-type'), type);
      assert.equal(answer.headers.get('transfer-encoding'), 'chunked');
    });

  test('a stream that fails midway ends without its last chunk', async () => {
    const connection = await RawConnection.open(shared.server);
    connection.post('', [], '/?kind=breaksMidway');
    await connection.closed();
    assert.match(connection.rest, /^HTTP\/1\.1 200 OK\r\n[^]*part 1;/);
    assert.doesNotMatch(connection.rest, /\r\n0\r\n/);
  });

  test('a throw is 500 without the words of the app, which are in the log beside the id', async () => {
    const answer = await get('throws', { 'x-request-id': 'my-id' });
    assert.equal(answer.status, 500);
    assert.deepEqual(errorOf(answer), {
      code: 'SERVE_INFERENCE_FAILED',
      message: 'The model failed on this call.',
      requestId: 'my-id',
      source: 'app',
      begun: true,
    });
    await shared.server.untilPrinted('my-id');
    await shared.server.untilPrinted(/Error: secret path \/etc\/model[^\n]*\n\s+at .*answers\.ts:\d+/);
  });

  test('a Response that is thrown is the answer', async () => {
    const { status, text } = await get('throwsResponse');
    assert.deepEqual([status, text], [402, 'buy more']);
  });

  for (const [kind, message] of [
    ['bigint', /output\.rows\[1\]\.id is a BigInt beyond 2\^53/],
    ['cycle', /output\.list\[0\]\.back refers back/],
    ['forgottenAwait', /output\.result is a promise; await it/],
    ['map', /output\.scores\[0\] is a Map; return Object\.fromEntries\(map\)/],
  ] as const)
    test(`${kind} is 500 SERVE_OUTPUT_INVALID, whose message names the place`, async () => {
      const answer = await get(kind);
      assert.deepEqual([answer.status, errorOf(answer).code], [500, 'SERVE_OUTPUT_INVALID']);
      assert.match(errorOf(answer).message, message);
    });

  test('an answer above --max-output is 500; one below it arrives whole', async () => {
    const large = await get('size&bytes=60000');
    assert.deepEqual([large.status, errorOf(large).code], [500, 'SERVE_OUTPUT_TOO_LARGE']);
    assert.equal((await get('size&bytes=40000')).text.length, 40_000);
  });
});
