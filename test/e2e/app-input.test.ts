/** Inputs: each body that a client sends, and the value that the app gets. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Packr } from 'msgpackr';
import { errorOf } from '../helpers/ask.js';
import { withEachRuntime, type Language } from '../helpers/runtimes.js';
import { call, startServer, type Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

const msgpack = new Packr({ useRecords: false });
const BOUNDARY = 'x-banana';

function multipart(...parts: readonly (readonly [head: string, body: string | Uint8Array])[]): Buffer {
  const pieces = parts.flatMap(([head, body]) => [`--${BOUNDARY}\r\n${head}\r\n\r\n`, body, '\r\n']);
  return Buffer.concat([...pieces, `--${BOUNDARY}--\r\n`].map((piece) => Buffer.from(piece as string)));
}

type Row = readonly [what: string, type: string | null, body: string | Uint8Array, input: unknown];

/** The form in which the fixture apps of both languages show bytes, and numbers that JavaScript cannot hold. */
const bytes = (hex: string): object => ({ kind: 'bytes', hex });
const large = (text: string): object => ({ kind: 'integer', text });
const OBJECT = '{"a":[1,null]}';
const PARSED = { a: [1, null] };

const TAKEN: readonly Row[] = [
  ['JSON', 'application/json', OBJECT, PARSED],
  ['JSON with a charset, in another case', 'Application/JSON; charset=utf-8', OBJECT, PARSED],
  ['a +json type', 'application/ld+json', OBJECT, PARSED],
  ['no type at all', null, OBJECT, PARSED],
  ['text', 'text/plain;charset=UTF-8', OBJECT, PARSED],
  ["curl's form default", 'application/x-www-form-urlencoded', OBJECT, PARSED],
  ['a JSON string', 'application/json', '"a\\u00fc\u{1F34C}"', 'aü\u{1F34C}'],
  ['a JSON number', 'application/json', ' 1.5e3\n', 1500],
  ['a number beyond 2^53 as a string', 'application/json', '"18446744073709551615"', '18446744073709551615'],
  ['a JSON null', 'application/json', 'null', null],
  ['false', 'application/json', 'false', false],
  ['an array', 'application/json', '[]', []],
  ['JSON behind a byte order mark', 'application/json', '\uFEFF{}', {}],
  [
    'MessagePack',
    'application/msgpack',
    msgpack.pack({ a: 1, b: Buffer.from([1, 255]) }),
    { a: 1, b: bytes('01ff') },
  ],
  [
    'MessagePack by its older name',
    'application/x-msgpack',
    msgpack.pack([1, 'two', null]),
    [1, 'two', null],
  ],
  [
    'a large integer in MessagePack',
    'application/msgpack',
    msgpack.pack(2n ** 60n),
    large(String(2n ** 60n)),
  ],
  ['bytes', 'application/octet-stream', Buffer.from([0, 1, 255]), bytes('0001ff')],
  ['an image', 'image/png', Buffer.from([0x89, 0x50]), bytes('8950')],
  ['an unknown type', 'application/x-something', OBJECT, bytes(Buffer.from(OBJECT).toString('hex'))],
  [
    'a form with fields and files',
    `multipart/form-data; boundary=${BOUNDARY}`,
    multipart(
      ['Content-Disposition: form-data; name="prompt"', 'hi ü'],
      ['Content-Disposition: form-data; name="tag"', 'a'],
      ['Content-Disposition: form-data; name="tag"', 'b'],
      [
        'Content-Disposition: form-data; name="image"; filename="x.png"\r\nContent-Type: image/png',
        Buffer.from([0x89, 0]),
      ],
    ),
    {
      prompt: 'hi ü',
      tag: ['a', 'b'],
      image: { filename: 'x.png', contentType: 'image/png', data: bytes('8900') },
    },
  ],
  ...[
    'application/json',
    'application/msgpack',
    'application/octet-stream',
    'multipart/form-data; boundary=x',
    null,
  ].map((type): Row => [`an empty body of type ${String(type)}`, type, '', null]),
];

const MALFORMED: readonly (readonly [
  what: string,
  type: string | null,
  body: string | Uint8Array,
  message: RegExp,
])[] = [
  ['JSON that ends early', 'application/json', '{"a":', /^The body is not valid JSON: /],
  ['text that is no JSON', 'text/plain', 'hello', /^The body is not valid JSON: .*\btext\b.*[Tt]rue/],
  [
    'a form that is no JSON',
    'application/x-www-form-urlencoded',
    'a=1&b=2',
    /^The body is not valid JSON: .*\bforms\b.*[Tt]rue/,
  ],
  ['two values', null, '{}{}', /^The body is not valid JSON: /],
  ['JSON that is not UTF-8', 'application/json', Buffer.from([0x22, 0xff, 0x22]), /not UTF-8/],
  [
    'MessagePack that ends early',
    'application/msgpack',
    Buffer.from([0x92, 1]),
    /^The body is not valid MessagePack: /,
  ],
  ['MessagePack with the byte nothing may use', 'application/msgpack', Buffer.from([0xc1]), /0xc1/],
  [
    'a form without its boundary',
    'multipart/form-data',
    'x',
    /^The multipart body could not be read: .*[Bb]oundary/,
  ],
  [
    'a form that is cut off',
    `multipart/form-data; boundary=${BOUNDARY}`,
    `--${BOUNDARY}\r\nContent-Dis`,
    /^The multipart body could not be read: /,
  ],
];

/** The value of 2^64 - 1 from JSON, in each language: JavaScript has no such number. */
const BEYOND: Readonly<Record<Language, unknown>> = {
  TypeScript: 18446744073709552000,
  Python: large('18446744073709551615'),
};

withEachRuntime(({ language, app }) => {
  test('an app whose config asks for forms and text gets fields and a string', LIMIT, async (t) => {
    const server = await startServer(app('takes-forms'), { t });
    const read = async (type: string, body: string): Promise<unknown> =>
      (await call(server.url, Buffer.from(body), { 'content-type': type })).json();
    const form = 'application/x-www-form-urlencoded';
    assert.deepEqual(await read(form, 'a=1&b=x+y&a=2'), {
      kind: 'object',
      input: { a: ['1', '2'], b: 'x y' },
    });
    assert.deepEqual(await read('text/plain', '{"a"'), { kind: 'string', input: '{"a"' });
    assert.deepEqual(await read('application/json', '"x"'), { kind: 'string', input: 'x' });
    assert.deepEqual(await read(form, ''), { kind: 'object', input: null });
    await server.stop();
  });

  describe("an app's input", LIMIT, () => {
    let server: Server;
    before(async () => {
      server = await startServer(app('describes-input'));
    });
    after(async () => {
      await server.stop();
    });

    /** fetch gives a string body a type of its own; bytes go without one. */
    const post = (type: string | null, body: string | Uint8Array): ReturnType<typeof call> =>
      call(server.url, Buffer.from(body as string), type === null ? {} : { 'content-type': type });
    const calls = async (): Promise<number> => (await post(null, '')).json<{ calls: number }>().calls;

    for (const [what, type, body, input] of TAKEN) {
      test(`${what} is taken`, async () => {
        const answer = await post(type, body);
        assert.equal(answer.status, 200, answer.text);
        assert.deepEqual(answer.json<{ input: unknown }>().input, input);
      });
    }

    test('a JSON number beyond 2^53 is exact where the language has such numbers', async () => {
      const answer = await post('application/json', '[18446744073709551615]');
      assert.deepEqual(answer.json<{ input: unknown }>().input, [BEYOND[language]]);
    });

    for (const [what, type, body, message] of MALFORMED) {
      test(`${what} is a 400 that the app never sees`, async () => {
        const before = await calls();
        const answer = await post(type, body);
        assert.equal(answer.status, 400);
        const error = errorOf(answer);
        assert.equal(error.code, 'SERVE_BAD_BODY');
        assert.match(error.message, message);
        assert.equal(error.requestId, answer.headers.get('x-request-id'));
        assert.equal(await calls(), before + 1, 'only the counting calls were counted');
      });
    }

    test('malformed bodies are not logged: anyone can send a thousand of them', () => {
      assert.doesNotMatch(server.stderr(), /ERROR|WARN|not valid/);
    });
  });
});
