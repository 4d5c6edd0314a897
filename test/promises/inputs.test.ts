/** The input of an app, by the content type and the body of the request. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Packr } from 'msgpackr';
import { errorOf } from '../helpers/ask.js';
import { call, fixture, type Answer } from '../helpers/server.js';
import { shareServer } from '../helpers/shared-server.js';

const msgpack = new Packr({ useRecords: false });

/** Bytes as the fixture app shows them. */
const bytes = (hex: string): object => ({ kind: 'bytes', hex });

const FORM = [
  '--x\r\nContent-Disposition: form-data; name="prompt"\r\n\r\nhi ü\r\n',
  '--x\r\nContent-Disposition: form-data; name="tag"\r\n\r\na\r\n',
  '--x\r\nContent-Disposition: form-data; name="tag"\r\n\r\nb\r\n',
  '--x\r\nContent-Disposition: form-data; name="image"; filename="x.png"\r\nContent-Type: image/png\r\n\r\nPNG\r\n',
  '--x--\r\n',
].join('');

describe('the input of an app', { timeout: 240_000 }, () => {
  const shared = shareServer(fixture('describes-input.mjs'));

  /** fetch gives a string a type of its own; bytes have none unless it is given. */
  const post = (type: string | null, body: string | Uint8Array): Promise<Answer> =>
    call(shared.server.url, Buffer.from(body as string), type === null ? {} : { 'content-type': type });
  const countCalls = async (): Promise<number> => (await post(null, '')).json<{ calls: number }>().calls;

  for (const [type, body, input] of [
    ['application/json', '{"a":[1,null,"ü"]}', { a: [1, null, 'ü'] }],
    ['application/json; charset=utf-8', '1.5e3', 1500],
    ['application/ld+json', '[]', []],
    [null, '{"a":1}', { a: 1 }],
    ['text/plain', '"text"', 'text'],
    ['application/json', '', null],
    ['application/msgpack', msgpack.pack({ a: 1, b: Buffer.from([1, 255]) }), { a: 1, b: bytes('01ff') }],
    ['application/octet-stream', Buffer.from([0, 1, 255]), bytes('0001ff')],
    ['image/png', 'PNG', bytes('504e47')],
    [
      'multipart/form-data; boundary=x',
      FORM,
      {
        prompt: 'hi ü',
        tag: ['a', 'b'],
        image: { filename: 'x.png', contentType: 'image/png', data: bytes('504e47') },
      },
    ],
  ] as const)
    test(`a body of type ${type ?? 'none'} and ${body.length} bytes becomes ${JSON.stringify(input).slice(0, 40)}`, async () => {
      const answer = await post(type, body);
      assert.equal(answer.status, 200, answer.text);
      assert.deepEqual(answer.json<{ input: unknown }>().input, input);
    });

  for (const [type, body, message] of [
    ['application/json', '{"a":', /^The body is not valid JSON: /],
    ['application/json', Buffer.from([0x22, 0xff, 0x22]), /not UTF-8/],
    ['text/plain', 'hello', /^The body is not valid JSON: /],
    ['application/msgpack', Buffer.from([0x92, 1]), /^The body is not valid MessagePack: /],
    ['multipart/form-data', FORM, /^The multipart body could not be read: .*boundary/i],
    ['multipart/form-data; boundary=x', FORM.slice(0, 30), /^The multipart body could not be read: /],
  ] as const)
    test(`a malformed body of type ${type} (${body.length} bytes) is 400, and the app never sees it`, async () => {
      const before = await countCalls();
      const answer = await post(type, body);
      assert.deepEqual([answer.status, errorOf(answer).code], [400, 'SERVE_BAD_BODY']);
      assert.match(errorOf(answer).message, message);
      assert.equal(await countCalls(), before + 1, 'only the call that counts was counted');
    });

  test('a body of several megabytes arrives whole', async () => {
    const answer = await post('application/json', JSON.stringify('x'.repeat(5_000_000)));
    assert.equal(answer.json<{ input: string }>().input.length, 5_000_000);
  });
});
