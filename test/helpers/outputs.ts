/** Return values of apps in each language, by the kinds of the fixture apps `answers`, and the answers of the server. */
import type { Language } from './runtimes.js';

export type Of<T> = Readonly<Record<Language, readonly T[]>>;

type JsonRow = readonly [kind: string, text: string];

/** The JSON that a client gets. */
const JSON_OF_BOTH: readonly JsonRow[] = [
  ['object', '{"a":[1,"two",null,true],"b":{"c":1.5}}'],
  ['array', '[1,2]'],
  ['string', '"text"'],
  ['emptyString', '""'],
  ['number', '0'],
  ['false', 'false'],
  ['null', 'null'],
  ['promise', '"later"'],
  ['unicode', '"ü\u{1F34C}\u2028"'],
  ['notFinite', '{"nan":null,"inf":[null,null]}'],
];

export const JSON_ROWS: Of<JsonRow> = {
  TypeScript: [
    ...JSON_OF_BOTH,
    ['undefined', 'null'],
    ['date', '{"at":"1970-01-01T00:00:00.000Z"}'],
    ['typedArrays', '{"f32":[0.5,1.5],"u8":[1,2],"i64":[1,-2],"buffer":[9],"deep":[{"f64":[0.1]}]}'],
    ['bigintSmall', '{"n":9007199254740991}'],
  ],
  Python: [
    ...JSON_OF_BOTH,
    ['large', '1180591620717411303424'],
    ['tuple', '[1,[2,3]]'],
    ['set', '[1,2,3]'],
    ['data', '{"label":"cat","score":"red"}'],
    ['named', '{"at":"2020-01-02T00:00:00+00:00","path":"/a","id":"00000000-0000-0000-0000-000000000001"}'],
    ['nested', '{"bytes":[1,2]}'],
  ],
};

export const MSGPACK_ROWS: Of<readonly [kind: string, value: unknown]> = {
  TypeScript: [
    ['object', { a: [1, 'two', null, true], b: { c: 1.5 } }],
    ['string', 'text'],
    ['undefined', null],
    [
      'typedArrays',
      {
        f32: [0.5, 1.5],
        u8: Buffer.from([1, 2]),
        i64: [1, -2],
        buffer: Buffer.from([9]),
        deep: [{ f64: [0.1] }],
      },
    ],
  ],
  Python: [
    ['object', { a: [1, 'two', null, true], b: { c: 1.5 } }],
    ['string', 'text'],
    ['null', null],
    ['nested', { bytes: Buffer.from([1, 2]) }],
    ['data', { label: 'cat', score: 'red' }],
  ],
};

/** Kinds of bytes, and their hex. */
export const BYTES: Of<readonly [kind: string, hex: string]> = {
  TypeScript: [
    ['uint8array', '0001feff'],
    ['emptyBytes', ''],
  ],
  Python: [
    ['uint8array', '0001feff'],
    ['bytearray', '0001feff'],
    ['memoryview', '0001feff'],
    ['emptyBytes', ''],
  ],
};

const SSE = 'text/event-stream';
const NDJSON = 'application/x-ndjson';

export const STREAMS: readonly (readonly [kind: string, accept: string, type: string, body: string])[] = [
  ['numbers', '*/*', NDJSON, '1\n{"two":2}\nthree'],
  ['numbers', NDJSON, NDJSON, '1\n{"two":2}\n"three"\n'],
  ['numbers', SSE, SSE, 'data: 1\n\ndata: {"two":2}\n\ndata: three\n\n'],
  [
    'events',
    'application/json, text/event-stream',
    SSE,
    'data: {"n":1}\n\ndata: two\ndata: lines\n\ndata: null\n\n',
  ],
  ['events', 'application/ndjson', NDJSON, '{"n":1}\n"two\\nlines"\nnull\n'],
  ['text', '*/*', 'text/plain; charset=utf-8', 'abc'],
  ['bytes', '*/*', 'application/octet-stream', '\u0001\u0002\u0003'],
  ['nothing', '*/*', 'application/octet-stream', ''],
];

/** Return values that are not answers, and the messages that callers get. */
export const MISTAKES: Of<readonly [kind: string, message: RegExp]> = {
  TypeScript: [
    ['bigint', /output\.rows\[1\]\.id is a BigInt beyond 2\^53/],
    ['cycle', /output\.list\[0\]\.back refers back to an object that contains it/],
    ['forgottenAwait', /output\.result is a promise; await it/],
    ['getter', /output\.model\.weights throws an Error when read/],
    ['function', /output is a function; call it, or leave it out/],
    ['nestedFunction', /output\.label is a function/],
    ['map', /output\.scores\[0\] is a Map; return Object\.fromEntries\(map\)/],
    ['set', /output is a Set; return \[\.\.\.set\]/],
    ['mapFirst', /output is a Map/],
    ['symbol', /output\.rows\[0\]\.kind is a symbol/],
    ['toJsonMap', /output\.row is a Map; return Object\.fromEntries\(map\)/],
    ['toJsonSymbol', /output\.kind is a symbol/],
    ['headers', /output\.replies\[0\] is a Headers; return Object\.fromEntries\(headers\)/],
    ['iterable', /output\.rows is an iterable without properties/],
    ['responseError', /Response\.error\(\), which has no status/],
  ],
  Python: [
    [
      'foo',
      /: output\["scores"\]\[3\] is a Foo; return what it holds as a dict, a list, text or a number\.$/,
    ],
    ['class', /: output\["model"\] is the class Foo; return an instance, as a dict\.$/],
    ['forgottenAwait', /: output\["result"\] is a coroutine; await it\.$/],
    ['generator', /: output\["rows"\] is a generator; return list\(\.\.\.\) of it\.$/],
    ['function', /: output\[0\] is a function; call it, or leave it out\.$/],
    ['cycle', /: output\["list"\]\[0\]\["back"\] refers back to an object that contains it\.$/],
    ['tupleKey', /: output\["a"\] has a tuple as a key; make it text\.$/],
  ],
};

/** Ways to fail, and their lines in the log. */
export const FAILURES: Of<readonly [kind: string, log: RegExp]> = {
  TypeScript: [
    ['throws', /Error: secret path \/etc\/model[^\n]*\n\s+at .*answers\.ts:\d+/],
    ['rejects', /TypeError: late[^\n]*\n\s+at .*answers\.ts:\d+/],
    ['returnsError', /Error: returned and not thrown[^\n]*\n\s+at .*answers\.ts:\d+/],
    ['throwsUndefined', /thrown value: undefined/],
    [
      'throwsObject',
      /thrown value: \{ reason: 'no credit', left: \[ \{ cents: 5 \} \], hostile: \[Getter\] \}/,
    ],
    ['throwsHostile', /a value that cannot be shown was thrown/],
    [
      'throwsParts',
      /All promises were rejected[^]*part 1 of 2: Error: first try\n\s+at .*answers\.ts[^]*part 2 of 2: second try/,
    ],
    ['breaksAtOnce', /Error: the stream broke/],
  ],
  Python: [
    ['throws', /answers\.py", line \d+, in raises\n[^]*ValueError: secret path \/etc\/model/],
    ['rejects', /answers\.py", line \d+, in rejects\n[^]*TypeError: late/],
    ['returnsError', /KeyError: 'returned and not raised'/],
    ['throwsHostile', /Hostile/],
    ['throwsParts', /ValueError: secret path[^]*direct cause of[^]*RuntimeError: no answer/],
    ['breaksAtOnce', /ValueError: the stream broke/],
  ],
};
