/** Return values of apps in each language, by the kinds of the fixture apps `answers`, and the answers of the server. */
import type { Language } from './runtimes.js';

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

/** Ways to fail, and their lines in the log. */
export const FAILURES: Readonly<Record<Language, readonly (readonly [kind: string, log: RegExp])[]>> = {
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
