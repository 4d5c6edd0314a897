/** The start of a worker, and its end: asked for, alone, or because its front is gone or breaks the protocol. */
import { GOLDEN, type GoldenFrame } from '../../protocol/golden-frames.js';
import {
  answers,
  call,
  calls,
  comes,
  dies,
  exits,
  hasBegun,
  leaves,
  sends,
  starts,
  stop,
  untilBegun,
  writes,
  type Conversation,
} from '../conversation.js';

const ONE_ROUTE = { path: '/', kind: 'handler', input: 'any', webhook: '', maxBatch: 1, attempts: 1 };

export const STARTS: readonly Conversation[] = [
  {
    title: 'hello, loaded and ready come in this order, with what the app says of itself',
    app: 'DESCRIBED',
    start: [
      comes('hello', { protocol: 2, runtime: /^(node v|python )\d+\.\d+\.\d+$/ }),
      starts(),
      comes('loaded', {
        info: { routes: [ONE_ROUTE], example: '{"a":1}', shutdown: true, api: 'banana' },
      }),
      comes('ready'),
    ],
    steps: [],
  },
  {
    title: 'an app that takes batches says so in its route',
    app: 'BATCH',
    start: [
      comes('hello'),
      starts(),
      comes('loaded', { info: { routes: [{ ...ONE_ROUTE, maxBatch: 0xffff }], shutdown: false } }),
      comes('ready'),
    ],
    steps: [],
  },
  {
    title: 'an app runs as many calls at the same time as it says, within the limit of the operator',
    app: 'SEVERAL',
    start: [
      comes('hello'),
      starts({ concurrency: 2 }),
      comes('loaded', { info: { concurrency: 2 } }),
      comes('ready'),
    ],
    steps: [],
  },
  {
    title: 'stop before start ends the worker',
    app: 'DOES',
    start: [comes('hello'), stop(), exits({ stdout: '' })],
    steps: [],
  },
  {
    title: 'stop during init ends the worker at once, without a shutdown that would tear down half an init',
    app: 'SLOW_INIT',
    start: [comes('hello'), starts(), comes('loaded'), stop(), exits({ stdout: '' })],
    steps: [],
  },
];

const FATALS = [
  [
    'with a syntax error',
    'SYNTAX_ERROR',
    'SERVE_APP_INVALID',
    { permanent: true, message: /app\.\w+:1: .*syntax/i },
  ],
  ['without a function', 'NO_FUNCTION', 'SERVE_APP_INVALID', { permanent: true, message: /`inference`/ }],
  [
    'whose import throws',
    'IMPORT_THROWS',
    'SERVE_APP_INVALID',
    { permanent: false, message: /download failed/ },
  ],
  ['that finds the disk full', 'DISK_FULL', 'SERVE_APP_INVALID', { transient: true, message: /no room/ }],
  [
    'whose init throws',
    'INIT_THROWS',
    'SERVE_INIT_FAILED',
    { permanent: false, message: /app\.\w+:1.*: init \w+:.* no GPU$/ },
  ],
  [
    'whose init cannot connect',
    'INIT_CANNOT_CONNECT',
    'SERVE_INIT_FAILED',
    { transient: true, message: /no store/ },
  ],
  [
    'whose example throws',
    'EXAMPLE_THROWS',
    'SERVE_INIT_FAILED',
    { permanent: false, message: /the example call \w+: .*not that/ },
  ],
  ['whose error is endless', 'LONG_ERROR', 'SERVE_INIT_FAILED', { message: /😀/ }],
] as const;

export const FAILED_STARTS = FATALS.map(([what, app, code, fields]): Conversation => {
  const fatal = comes('fatal', { code, transient: false, permanent: false, ...fields });
  const isLoaded = code === 'SERVE_INIT_FAILED';
  return {
    title: `an app ${what} ends its worker with fatal ${code}`,
    app,
    start: [comes('hello'), starts(), ...(isLoaded ? [comes('loaded')] : []), fatal, exits({ code: 1 })],
    steps: [],
  };
});

export const ENDS: readonly Conversation[] = [
  {
    title: 'stop lets the running call end, runs shutdown, and leaves the calls that have not begun',
    app: 'DOES',
    steps: [
      call(1, ['wait']),
      call(2, ['echo', 1]),
      untilBegun(1),
      stop(),
      answers(1, 'the server is stopping'),
      hasBegun(1),
      exits({ stdout: 'shut down\n' }),
    ],
  },
  {
    title: 'a shutdown that throws is reported on stderr, and the worker exits with 1',
    app: 'BAD_SHUTDOWN',
    steps: [stop(), exits({ code: 1, stderr: /^shutdown (threw|raised): [^]*stuck/ })],
  },
  {
    title: 'an idle worker dies with its front, and so do the programs that it started',
    app: 'HANGS',
    steps: [leaves(), dies(/^$/)],
  },
  {
    title: 'a busy worker dies with its front, and so do the programs that it started',
    app: 'HANGS',
    steps: [call(1, 1), untilBegun(1), leaves(), dies(/^$/)],
  },
  {
    title: 'the end of fd 4 is the end of the worker, also within a frame',
    app: 'DOES',
    steps: [writes(goldenFrame('one call').subarray(0, 20)), leaves(4), dies()],
  },
  {
    title: 'a worker that cannot write to fd 3 any more dies',
    app: 'DOES',
    steps: [leaves(3), call(1, ['echo', 1]), dies()],
  },
];

const BROKEN = [
  ['garbage', writes(Buffer.from('POST / HTTP/1.1\r\nHost: localhost\r\n')), /frame head of/],
  ['a message that only a worker sends', writes(goldenFrame('ready')), /a worker cannot take '?ready/],
  ['a message of an unknown type', writes(frame('92a56e6f6e652101')), /none!/],
  ['a message with a wrong field', writes(frame('93a663616e63656ca178a178')), /malformed message/],
  ['a fragment of no call', sends({ type: 'body', id: 9 }, 'x'), /a body fragment for unknown call 9/],
  ['a body that is longer than announced', calls(1, [[1, 'abc', 2]]), /./],
  [
    'more calls at once than a route takes',
    calls(1, [
      [1, '1'],
      [2, '2'],
    ]),
    /a batch of 2 calls; the route \/ takes at most 1/,
  ],
] as const;

export const BROKEN_PROTOCOLS: readonly Conversation[] = [
  {
    title: 'a worker that runs calls at the same time takes no batch',
    app: 'SEVERAL',
    steps: [
      calls(1, [
        [1, '1'],
        [2, '2'],
      ]),
      dies(/^The front broke the protocol: /),
    ],
  },
  ...BROKEN.map(([what, step, said]): Conversation => ({
    title: `a worker that reads ${what} reports it and dies`,
    app: 'DOES',
    steps: [step, dies(new RegExp(`^The front broke the protocol: .*${said.source}`))],
  })),
  {
    title: 'a worker that reads a call before it is ready reports it and dies',
    app: 'DOES',
    start: [comes('hello'), call(1, 1), dies(/^The front broke the protocol: a (call|message) before ready/)],
    steps: [],
  },
];

/** The bytes of a message, from the whole frames that every implementation is tested with. */
function goldenFrame(name: string): Buffer {
  return (GOLDEN.find((golden) => golden.name === name) as GoldenFrame).frame;
}

/** A frame with this head, in hexadecimal, and no body. */
function frame(head: string): Buffer {
  const bytes = Buffer.from(head, 'hex');
  const lengths = Buffer.alloc(8);
  lengths.writeUInt32LE(bytes.length);
  return Buffer.concat([lengths, bytes]);
}
