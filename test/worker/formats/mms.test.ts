/** Items as a custom service gets them, and results as its clients do. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ServeError } from '../../../protocol/errors.js';
import type { Call } from '../../../protocol/wire/messages.js';
import { ITEMS } from '../../../worker/api/route-options.js';
import type { ReadItem } from '../../../worker/api/mms/item.js';
import { readItem, writeResult } from '../../../worker/formats/mms.js';
import { readInput } from '../../../worker/formats/read-input.js';
import { callWith } from '../calls.js';

const FORM = 'application/x-www-form-urlencoded';
const MULTIPART = 'multipart/form-data; boundary=b';

async function read(body: string | Buffer, fields: Partial<Call> = {}): Promise<ReadItem> {
  return await readItem(Buffer.from(body), callWith({ contentType: '', ...fields }));
}

test('raw items hold bytes, whatever their content type', async () => {
  const rows: readonly (readonly [body: string, fields: Partial<Call>, item: object])[] = [
    ['{"a":', { contentType: 'application/json' }, { body: '<{"a":>' }],
    ['\xff', { contentType: 'text/plain' }, { body: '<\xc3\xbf>' }],
    ['', { format: 'json' }, { body: '<>' }],
    ['a=1', { contentType: FORM, params: 'b=2' }, { a: '<1>', b: '<2>' }],
    [part('name="a"', '1') + '--b--', { contentType: MULTIPART }, { a: '<1>' }],
  ];
  for (const [body, fields, item] of rows) {
    const read_ = await readItem(Buffer.from(body), callWith({ contentType: '', ...fields }), true);
    assert.deepEqual(shown(read_.item), item);
  }
});

/** Bytes as `<text>`, so that a text and bytes of the same content differ. */
function shown(item: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const entries = Object.entries(item).map(([name, value]) => [
    name,
    Buffer.isBuffer(value) ? `<${value.toString('latin1')}>` : value,
  ]);
  return Object.fromEntries(entries) as Record<string, unknown>;
}

/** `head` follows `form-data; `. */
function part(head: string, content: string): string {
  return `--b\r\nContent-Disposition: form-data; ${head}\r\n\r\n${content}\r\n`;
}

const ITEMS_OF: readonly (readonly [what: string, body: string, fields: Partial<Call>, item: object])[] = [
  ['JSON', '{"a":[1]}', { contentType: 'application/json' }, { body: { a: [1] } }],
  ['JSON with a charset', '[1]', { contentType: 'Application/JSON; charset=utf-8' }, { body: [1] }],
  ['JSON that is a number', '7', { contentType: 'application/json' }, { body: 7 }],
  ['text', 'schön', { contentType: 'text/plain' }, { body: 'schön' }],
  ['text of any kind', '<p>', { contentType: 'text/html; charset=utf-8' }, { body: '<p>' }],
  ['a body without a type', '{"a":1}', {}, { body: '<{"a":1}>' }],
  ['another type of JSON', '1', { contentType: 'application/geo+json' }, { body: '<1>' }],
  ['an image', 'PNG', { contentType: 'image/png' }, { body: '<PNG>' }],
  ['nothing', '', {}, { body: '<>' }],
  ['no text', '', { contentType: 'text/plain' }, { body: '' }],
  ['a form', 'a=1&b=x+y%21&c', { contentType: FORM }, { a: '<1>', b: '<x y!>', c: '<>' }],
  ['a form of bytes', 'a=%ff%00&b=%zz', { contentType: FORM }, { a: '<\xff\0>', b: '<%zz>' }],
  ['a form with a name of the language', '__proto__=1', { contentType: FORM }, protoItem('<1>')],
  ['a form with a field twice', 'a=1&a=2', { contentType: FORM }, { a: '<2>' }],
  [
    'multipart',
    part('name="n"', '5') + part('name="i"; filename="i.png"\r\nContent-Type: image/png', 'PNG') + '--b--',
    { contentType: MULTIPART },
    { n: '<5>', i: '<PNG>' },
  ],
  [
    'multipart with types',
    `${part('name="j"\r\nContent-Type: application/json', '{"a":1}')}${part('name="t"\r\nContent-Type: text/csv', 'a,b')}--b--`,
    { contentType: MULTIPART },
    { j: { a: 1 }, t: 'a,b' },
  ],
  ['a query beside a body', 'B', { params: 'q=1&body=x' }, { q: '<1>', body: '<B>' }],
  [
    'a query beside a form',
    'b=2&c=3',
    { contentType: FORM, params: 'a=1&b=1' },
    { a: '<1>', b: '<2>', c: '<3>' },
  ],
  [
    'a query beside multipart',
    `${part('name="a"', '2')}--b--`,
    { contentType: MULTIPART, params: 'a=1' },
    { a: '<2>' },
  ],
  [
    'what a dialect knows to be JSON',
    '{"a":1}',
    { format: 'json', contentType: 'text/plain' },
    { body: { a: 1 } },
  ],
  ['a dialect’s JSON of no value', '', { format: 'json' }, { body: null }],
  [
    'what a dialect knows to be bytes',
    '1',
    { format: 'bytes', contentType: 'application/json' },
    { body: '<1>' },
  ],
];

/** An object with an own property of that name, which a literal would not create. */
function protoItem(value: string): object {
  return Object.fromEntries([['__proto__', value]]);
}

for (const [what, body, fields, expected] of ITEMS_OF) {
  test(`an item of ${what} has values by the types of its fields`, async () => {
    const { item } = await read(body, fields);
    assert.deepEqual(shown(item), expected);
    assert.deepEqual(Object.keys(item), Object.keys(expected), 'the query stands first');
  });
}

for (const [what, body, contentType, message] of [
  ['JSON', '{"a":', 'application/json', /^The body is not valid JSON: .*\.$/],
  ['no JSON at all', '', 'application/json', /^The body is not valid JSON: /],
  ['JSON that is not UTF-8', '"\xff"', 'application/json', /^The body is not valid JSON: it is not UTF-8\.$/],
  ['text', '\xff', 'text/plain', /^The body is not text in UTF-8\.$/],
  ['multipart', '--b\r\n', MULTIPART, /^The multipart body could not be read: .*\.$/],
  [
    'JSON in a field',
    `${part('name="j"\r\nContent-Type: application/json', '{')}--b--`,
    MULTIPART,
    /^The field "j" is not valid JSON: /,
  ],
] as const) {
  test(`malformed ${what} is the caller's fault`, async () => {
    await assert.rejects(
      read(Buffer.from(body, 'latin1'), { contentType }),
      (error) =>
        error instanceof ServeError &&
        error.code === 'SERVE_BAD_BODY' &&
        error.kind === 'input' &&
        message.test(error.message),
    );
  });
}

test('the parts of an item are all fields as they were sent, repeated ones included', async () => {
  const body = `${part('name="f"; filename="a.txt"\r\nContent-Type: text/plain', 'A')}${part('name="f"; filename="b"', 'B')}--b--`;
  const read_ = await read(body, { contentType: MULTIPART, params: 'f=Q&g=G' });
  assert.deepEqual(
    read_.parts().map(({ data, ...about }) => ({ ...about, data: data.toString() })),
    [
      { name: 'f', contentType: '', data: 'Q' },
      { name: 'g', contentType: '', data: 'G' },
      { name: 'f', filename: 'a.txt', contentType: 'text/plain', data: 'A' },
      { name: 'f', filename: 'b', contentType: '', data: 'B' },
    ],
  );
  assert.deepEqual(read_.fieldTypes(), { f: '', g: '' });
});

test('the bytes of an item are its own: changing them changes neither the request nor its parts', async () => {
  const body = Buffer.from('abc');
  const { item, parts } = await readItemOf(body);
  (item['body'] as Buffer).fill(0);
  assert.equal(body.toString(), 'abc');
  assert.equal(parts()[0]?.data.toString(), 'abc');
});

async function readItemOf(
  body: Buffer,
): Promise<{ item: ReadItem['item']; parts: () => { data: Buffer }[] }> {
  const read_ = await readItem(body, callWith({ contentType: '' }));
  return { item: read_.item, parts: () => read_.parts() };
}

test('a form holds any bytes, as a client escapes them', async () => {
  const escaped = (bytes: Uint8Array): string =>
    [...bytes].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ maxLength: 20 }),
      fc.string({ minLength: 1, unit: 'grapheme' }),
      async (bytes, name) => {
        const { item } = await read(`${encodeURIComponent(name)}=${escaped(bytes)}`, { contentType: FORM });
        assert.deepEqual(item[name], Buffer.from(bytes));
      },
    ),
  );
});

test('an app that wishes for items gets one of an empty body, too', async () => {
  const input = await readInput(callWith({ contentType: '' }), Buffer.alloc(0), ITEMS);
  assert.deepEqual((input as ReadItem).item, { body: Buffer.alloc(0) });
});

const CALL = callWith();

for (const [what, value, contentType, text] of [
  ['bytes', Buffer.from('ab'), 'application/octet-stream', 'ab'],
  ['a text', 'schön', 'text/plain; charset=utf-8', 'schön'],
  ['an object', { a: [1, 'ü'] }, 'application/json', '{\n  "a": [\n    1,\n    "ü"\n  ]\n}'],
  ['null', null, 'application/json', 'null'],
  ['a number', 0.5, 'application/json', '0.5'],
  ['a typed array', new Float32Array([1]), 'application/json', '[\n  1\n]'],
] as const) {
  test(`a result that is ${what} is written as ${contentType}`, () => {
    const output = writeResult(value, CALL);
    assert.equal(output.contentType, contentType);
    assert.equal(Buffer.from(output.body).toString(), text);
  });
}

test('a result in JSON is pure ASCII for a client that breaks any other character', () => {
  const { body } = writeResult({ a: 'ü' }, callWith({ asciiJson: true }));
  assert.equal(Buffer.from(body).toString(), '{\n  "a": "\\u00fc"\n}');
});

test("a result that is not data is refused with Multi Model Server's text, and the log names its kind", () => {
  assert.throws(
    () => writeResult({ a: new Map() }, CALL),
    (error) =>
      error instanceof ServeError &&
      error.code === 'SERVE_OUTPUT_INVALID' &&
      error.message === 'Unsupported model output data type.' &&
      /output\.a is a Map/.test(error.detail),
  );
});
