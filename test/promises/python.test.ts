/** Workers in Python: calls, input formats, outputs, errors, Potassium and a death, behind one server. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Packr } from 'msgpackr';
import { errorOf } from '../helpers/ask.js';
import { needs } from '../helpers/needs.js';
import { ROOT, call, type Answer } from '../helpers/server.js';
import { shareServer } from '../helpers/shared-server.js';

const msgpack = new Packr({ useRecords: false });

describe('apps in Python', { timeout: 240_000, skip: needs('python3') }, () => {
  const models = {
    inputs: 'describes-input',
    outputs: 'answers',
    potassium: 'potassium-app',
    dies: 'dies-while-busy',
  };
  const args = Object.entries(models).flatMap(([name, file]) => [
    '--model',
    `${name}=${ROOT}test/fixtures/python-apps/${file}.py`,
  ]);
  const shared = shareServer(null, { args, expectedRestarts: 1 });

  const send = (
    path: string,
    body: string | Uint8Array | null,
    headers: Record<string, string> = {},
  ): Promise<Answer> => call(`${shared.server.url}/models${path}`, body, headers);

  for (const [type, body, input] of [
    ['application/json', '{"a":[1,null,"ü"]}', { a: [1, null, 'ü'] }],
    ['application/json', '[18446744073709551615]', [{ kind: 'integer', text: '18446744073709551615' }]],
    ['application/json', '', null],
    ['application/msgpack', msgpack.pack({ a: 1 }), { a: 1 }],
    ['application/octet-stream', Buffer.from([0, 255]), { kind: 'bytes', hex: '00ff' }],
    [
      'multipart/form-data; boundary=x',
      '--x\r\nContent-Disposition: form-data; name="prompt"\r\n\r\nhi ü\r\n' +
        '--x\r\nContent-Disposition: form-data; name="image"; filename="x.png"\r\n\r\nPNG\r\n--x--\r\n',
      {
        prompt: 'hi ü',
        image: { filename: 'x.png', contentType: 'text/plain', data: { kind: 'bytes', hex: '504e47' } },
      },
    ],
  ] as const)
    test(`a body of type ${type} and ${body.length} bytes becomes ${JSON.stringify(input)}`, async () => {
      const answer = await send('/inputs/', body, { 'content-type': type });
      assert.equal(answer.status, 200, answer.text);
      assert.deepEqual(answer.json<{ input: unknown }>().input, input);
    });

  test('malformed JSON is 400, and the app never sees it', async () => {
    const answer = await send('/inputs/', '{"a":', { 'content-type': 'application/json' });
    assert.deepEqual([answer.status, errorOf(answer).code], [400, 'SERVE_BAD_BODY']);
  });

  for (const [kind, type, text] of [
    ['object', 'application/json', '{"a":[1,"two",null,true],"b":{"c":1.5}}'],
    ['promise', 'application/json', '"later"'],
    ['data', 'application/json', '{"label":"cat","score":"red"}'],
    ['text', 'text/plain; charset=utf-8', 'abc'],
    ['numbers', 'application/x-ndjson', '1\n{"two":2}\nthree'],
    ['bytes', 'application/octet-stream', '\u0001\u0002\u0003'],
  ] as const)
    test(`an output that is ${kind} is answered as ${type}`, async () => {
      const answer = await send(`/outputs/?kind=${kind}`, null);
      assert.deepEqual([answer.status, answer.text], [200, text]);
      assert.equal(answer.headers.get('content-type'), type);
    });

  test('an exception is 500 without its text; the log has its traceback and the id', async () => {
    const answer = await send('/outputs/?kind=throws', null, { 'x-request-id': 'my-id' });
    const { code, message, source } = errorOf(answer);
    assert.deepEqual(
      [answer.status, code, message, source],
      [500, 'SERVE_INFERENCE_FAILED', 'The model failed on this call.', 'app'],
    );
    await shared.server.untilPrinted('my-id');
    await shared.server.untilPrinted(/answers\.py", line \d+, in raises\n[^]*secret path/);
  });

  test('an output that no format can carry is 500 SERVE_OUTPUT_INVALID, whose message names the place', async () => {
    const answer = await send('/outputs/?kind=foo', null);
    assert.deepEqual([answer.status, errorOf(answer).code], [500, 'SERVE_OUTPUT_INVALID']);
    assert.match(errorOf(answer).message, /output\["scores"\]\[3\] is a Foo/);
  });

  test('a Potassium app keeps its context between calls and answers a background job', async () => {
    const type = { 'content-type': 'application/json' };
    const first = (await send('/potassium/', '{"a":1}', type)).json<{ json: unknown; calls: number }>();
    const second = (await send('/potassium/', '{"a":2}', type)).json<{ json: unknown; calls: number }>();
    assert.deepEqual([first.json, second.json], [{ a: 1 }, { a: 2 }]);
    assert.equal(second.calls, first.calls + 1);
    assert.equal((await send('/potassium/later', '{}', type)).text, '{"started":true}\n');
    await shared.cues.untilNoted(/^done /);
  });

  test('kill -9 of a worker in a call: its client gets 500 SERVE_WORKER_LOST, the next call an answer', async () => {
    const type = { 'content-type': 'application/json' };
    const lost = await send('/dies/', '{"by":"SIGKILL"}', type);
    assert.deepEqual([lost.status, errorOf(lost).code], [500, 'SERVE_WORKER_LOST']);
    assert.match(errorOf(lost).message, /signal SIGKILL/);
    const next = await send('/dies/', '{}', type);
    assert.equal(next.status, 200, next.text);
  });
});
