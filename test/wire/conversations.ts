/** What every worker says and does on the wire, whatever its language. */
import {
  DATA_OVERHEAD_BYTES,
  FIRST_WEBHOOK_REF,
  MAX_FRAGMENT_BYTES,
  type Call,
} from '../../protocol/wire/messages.js';
import { assertEchoesTenMegabytes } from '../processes/worker/large-echo.js';
import { GOLDEN, type GoldenFrame } from '../protocol/golden-frames.js';
import {
  OF_NO_CALL,
  answers,
  call,
  calls,
  cancel,
  comes,
  comesInFragments,
  credit,
  dies,
  exits,
  fails,
  hasBegun,
  hasEntries,
  inAnyOrder,
  inTurn,
  leaves,
  sends,
  starts,
  stop,
  untilBegun,
  writes,
  type Conversation,
  type Step,
} from './conversation.js';

const ONE_ROUTE = { path: '/', kind: 'handler', input: 'any', webhook: '', maxBatch: 1, attempts: 1 };
const WINDOW = 10;
/** Answers of up to 1000 bytes, and streams that stop after every chunk. */
const SMALL = { limits: { maxOutputBytes: 1000, streamWindowBytes: WINDOW } };
const TRACE = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

const TOKENS = {
  kind: 'counter',
  name: 'tokens',
  value: 3,
  unit: '',
  dimensions: 'language\nen',
  callIds: [],
};

const STARTS: readonly Conversation[] = [
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
  ['with a syntax error', 'SYNTAX_ERROR', 'SERVE_APP_INVALID', { permanent: true, message: /app\.\w+:1: .*syntax/i }],
  ['without a function', 'NO_FUNCTION', 'SERVE_APP_INVALID', { permanent: true, message: /`inference`/ }],
  ['whose import throws', 'IMPORT_THROWS', 'SERVE_APP_INVALID', { permanent: false, message: /download failed/ }],
  ['that finds the disk full', 'DISK_FULL', 'SERVE_APP_INVALID', { transient: true, message: /no room/ }],
  ['whose init throws', 'INIT_THROWS', 'SERVE_INIT_FAILED', { permanent: false, message: /app\.\w+:1.*: init \w+:.* no GPU$/ }],
  ['whose init cannot connect', 'INIT_CANNOT_CONNECT', 'SERVE_INIT_FAILED', { transient: true, message: /no store/ }],
  ['whose example throws', 'EXAMPLE_THROWS', 'SERVE_INIT_FAILED', { permanent: false, message: /the example call \w+: .*not that/ }],
  ['whose error is endless', 'LONG_ERROR', 'SERVE_INIT_FAILED', { message: /😀/ }],
] as const;

const FAILED_STARTS = FATALS.map(([what, app, code, fields]): Conversation => {
  const fatal = comes('fatal', { code, transient: false, permanent: false, ...fields });
  const isLoaded = code === 'SERVE_INIT_FAILED';
  return {
    title: `an app ${what} ends its worker with fatal ${code}`,
    app,
    start: [comes('hello'), starts(), ...(isLoaded ? [comes('loaded')] : []), fatal, exits({ code: 1 })],
    steps: [],
  };
});

const CALLS: readonly Conversation[] = [
  {
    title: 'a call is noted as begun, and answered, whatever its id is',
    app: 'DOES',
    steps: [
      hasBegun(0),
      call(7, ['echo', { prompt: 'hé' }]),
      answers(7, { prompt: 'hé' }, { contentType: 'application/json' }),
      hasBegun(7),
      call(0xffff_ffff, ['echo', null]),
      answers(0xffff_ffff, null),
      hasBegun(0xffff_ffff),
    ],
  },
  {
    title: 'calls that are sent ahead run one at a time, in their order',
    app: 'DOES',
    steps: [
      call(1, ['wait']),
      call(2, ['echo', 'second']),
      call(3, ['echo', 'third']),
      untilBegun(1),
      hasBegun(1),
      cancel(1),
      answers(1, 'the client left'),
      answers(2, 'second'),
      answers(3, 'third'),
    ],
  },
  {
    title: 'an app gets the facts of a call',
    app: 'DOES',
    steps: [
      call(1, ['facts'], { path: '/a%20b', query: 'q=1', headers: `X-A\nb\nTraceparent\n${TRACE}` }),
      answers(1, ['r1', '/a%20b', '1', 'b', TRACE]),
    ],
  },
  {
    title: 'a body comes in fragments, which those of other calls may come between; an empty one is null',
    app: 'BATCH',
    steps: [
      calls(1, [[1, '"a', 4]]),
      calls(2, [[2, '', 3]]),
      sends({ type: 'body', id: 2 }, '"x"'),
      sends({ type: 'body', id: 1 }, 'b"'),
      calls(3, [[3, '']]),
      inAnyOrder(
        [1, answers(1, { input: 'ab', alone: true })],
        [2, answers(2, { input: 'x', alone: true })],
        [3, answers(3, { input: null, alone: true })],
      ),
    ],
  },
  {
    title: 'a long answer comes in fragments, and a stop behind its call cuts nothing',
    app: 'DOES',
    steps: [
      call(1, ['bytes', 8_000_000]),
      untilBegun(1),
      stop(),
      comesInFragments(1, 8_000_000),
      exits({}),
    ],
  },
  {
    title: 'ten megabytes go in and come out in fragments',
    app: 'DESCRIBED',
    steps: [({ worker }) => assertEchoesTenMegabytes(worker)],
  },
  {
    title: 'an answer has the status and the headers of the app',
    app: 'DOES',
    steps: [
      call(1, ['respond', { status: 201, json: 1, headers: { 'X-Model': 'v2' } }]),
      answers(1, 1, { status: 201, contentType: 'application/json', headers: 'X-Model\nv2' }),
    ],
  },
  {
    title: 'a malformed body, and a format that the worker does not have, fail their calls alone',
    app: 'DOES',
    steps: [
      calls(1, [[1, '{"a":']]),
      fails(1, 'SERVE_BAD_BODY'),
      call(2, ['echo', 1], { format: 'none' }),
      fails(2, 'SERVE_BAD_BODY'),
      call(3, ['echo', 1], { answer: 'none' }),
      fails(3, 'SERVE_BAD_BODY'),
      call(4, ['echo', 1]),
      answers(4, 1),
    ],
  },
  {
    title: 'an app that throws fails its call, and only the log is told why',
    app: 'DOES',
    steps: [
      call(1, ['throw', 'secret']),
      fails(1, 'SERVE_INFERENCE_FAILED', {
        message: 'The model failed on this call.',
        detail: /Error: secret\b[^]*app\.\w+|app\.\w+[^]*Error: secret/,
        kind: 'exception',
        status: 0,
      }),
      call(2, ['refuse', [422, 'too young']]),
      fails(2, 'SERVE_HTTP_ERROR', { message: 'too young', status: 422 }),
      call(3, ['echo', 1]),
      answers(3, 1),
    ],
  },
  {
    title: 'an output that cannot be sent fails its call',
    app: 'DOES',
    spec: SMALL,
    steps: [
      call(1, ['unsendable']),
      fails(1, 'SERVE_OUTPUT_INVALID'),
      call(2, ['bytes', 1001]),
      fails(2, 'SERVE_OUTPUT_TOO_LARGE', { message: /1001 bytes; --max-output allows 1000/ }),
      call(3, ['bytes', 1000]),
      comes('result', { id: 3, bodyBytes: 1000 }),
    ],
  },
  {
    title: 'after three calls in a row without memory the worker gives up, and begins no more',
    app: 'DOES',
    steps: [
      call(1, ['exhaust']),
      call(2, ['exhaust']),
      call(3, ['echo', 1]),
      call(4, ['exhaust']),
      call(5, ['exhaust']),
      call(6, ['exhaust']),
      call(7, ['echo', 1]),
      fails(1, 'SERVE_INFERENCE_FAILED', { kind: 'out-of-memory' }),
      fails(2, 'SERVE_INFERENCE_FAILED', { kind: 'out-of-memory' }),
      answers(3, 1),
      fails(4, 'SERVE_INFERENCE_FAILED', { kind: 'out-of-memory' }),
      fails(5, 'SERVE_INFERENCE_FAILED', { kind: 'out-of-memory' }),
      fails(6, 'SERVE_INFERENCE_FAILED', { kind: 'out-of-memory' }),
      comes('fatal', {
        code: 'SERVE_WORKER_LOST',
        message: 'the app ran out of memory in 3 calls in a row',
        permanent: false,
      }),
      hasBegun(6),
      exits({ code: 1 }),
    ],
  },
  {
    title: 'a worker does not judge a deadline: its front cancels the call',
    app: 'DOES',
    steps: [call(1, ['echo', 1], { deadlineMs: 1 }), answers(1, 1)],
  },
];

const BATCHES: readonly Conversation[] = [
  {
    title: 'the calls of a frame begin together behind one note, and each gets its own answer',
    app: 'BATCH',
    steps: [
      calls(1, [[1, '"a"'], [2, ''], [3, '"c"']]),
      answers(1, { input: 'a', of: 3, id: 'r1' }),
      answers(2, { input: null, of: 3, id: 'r2' }),
      answers(3, { input: 'c', of: 3, id: 'r3' }),
      hasBegun(3),
    ],
  },
  {
    title: 'a batch begins once its last frame and all bodies are there, without the calls cancelled until then',
    app: 'BATCH',
    steps: [
      calls(5, [[1, '"a"']], false),
      calls(5, [[2, '"', 3]], false),
      calls(5, [[3, '"', 3]], false),
      calls(5, [[4, '"d"']], false),
      calls(5, []),
      cancel(1),
      fails(1, 'SERVE_CANCELLED'),
      cancel(3),
      fails(3, 'SERVE_CANCELLED'),
      hasBegun(0),
      sends({ type: 'body', id: 2 }, 'b"'),
      answers(2, { input: 'b', of: 2, id: 'r2' }),
      answers(4, { input: 'd', of: 2, id: 'r4' }),
      hasBegun(4),
      calls(5, [[1, '7']]),
      answers(1, { input: 7, alone: true }),
    ],
  },
  {
    title: 'a batch whose calls are all cancelled is over, and its number and their ids are free',
    app: 'BATCH',
    steps: [
      calls(5, [[1, '', 9]], false),
      cancel(1),
      fails(1, 'SERVE_CANCELLED'),
      calls(5, []),
      calls(5, [[1, '1']]),
      answers(1, { input: 1, alone: true }),
    ],
  },
  {
    title: 'an entry that is an error, or a body that is malformed, fails its own call',
    app: 'BATCH',
    steps: [
      calls(1, [[1, '"a"'], [2, '"error"'], [3, '{"cut'], [4, '4']]),
      inAnyOrder(
        [1, answers(1, { input: 'a', of: 3, id: 'r1' })],
        [2, fails(2, 'SERVE_INFERENCE_FAILED', { detail: /only this one/ })],
        [3, fails(3, 'SERVE_BAD_BODY')],
        [4, answers(4, { input: 4, of: 3, id: 'r4' })],
      ),
    ],
  },
  {
    title: 'a batch function that throws, or returns too few entries, fails all calls of its batch, once each',
    app: 'BATCH',
    steps: [
      calls(1, [[1, '"throw"'], [2, '2']]),
      comes('log', { level: 'warn', message: /all 2 calls of its batch fail\. .*repeatable/ }),
      fails(1, 'SERVE_INFERENCE_FAILED', { detail: /of one of them/ }),
      fails(2, 'SERVE_INFERENCE_FAILED', { detail: /of one of them/ }),
      calls(2, [[3, '"throw"'], [4, '2']]),
      fails(3, 'SERVE_INFERENCE_FAILED'),
      fails(4, 'SERVE_INFERENCE_FAILED'),
      calls(2, [[5, '"drop"'], [6, '2']]),
      fails(5, 'SERVE_OUTPUT_INVALID', { message: /1 entry for 2 calls/ }),
      fails(6, 'SERVE_OUTPUT_INVALID', { message: /1 entry for 2 calls/ }),
    ],
  },
  {
    title: 'a batch of an app that is repeatable runs again in halves, and only the guilty call fails',
    app: 'REPEATABLE',
    steps: [
      calls(1, [[1, '"a"'], [2, '"bad"'], [3, '"c"'], [4, '"d"']]),
      inAnyOrder(
        [1, answers(1, 1)],
        [2, fails(2, 'SERVE_INFERENCE_FAILED', { kind: 'exception', detail: /this one/ })],
        [3, answers(3, 2)],
        [4, answers(4, 2)],
      ),
      hasBegun(4),
    ],
  },
  {
    title: 'a batch whose entries all lack memory counts as one call without memory',
    app: 'BATCH',
    steps: [
      ...[1, 3, 5].flatMap((id) => [
        calls(1, [[id, '"exhaust"'], [id + 1, '2']]),
        fails(id, 'SERVE_INFERENCE_FAILED', { kind: 'out-of-memory' }),
        fails(id + 1, 'SERVE_INFERENCE_FAILED', { kind: 'out-of-memory' }),
      ]),
      comes('fatal', { message: /^the app ran out of memory in 3 calls in a row/ }),
      exits({ code: 1 }),
    ],
  },
];

const STREAMS: readonly Conversation[] = [
  {
    title: 'a stream is a head, its chunks and an end; then the next call begins',
    app: 'DOES',
    steps: [
      call(1, ['letters', 'ab']),
      call(2, ['echo', 2]),
      comes('head', { id: 1, status: 200, headers: '' }),
      comes('chunk', { id: 1 }, 'a'),
      comes('chunk', { id: 1 }, 'b'),
      comes('end', { id: 1 }),
      answers(2, 2),
    ],
  },
  {
    title: 'a stream sends a chunk only while it has credit, and pays back what the chunk was longer',
    app: 'DOES',
    spec: { limits: { maxOutputBytes: 1000, streamWindowBytes: 2 } },
    steps: [
      call(1, ['numbers', 3]),
      comes('head', { id: 1 }),
      comes('chunk', { id: 1 }, '{"n":0}\n'),
      credit(1, 6),
      sends({ type: 'ping', ref: 1 }),
      comes('pong', { ref: 1 }),
      credit(1, 1),
      comes('chunk', { id: 1 }, '{"n":1}\n'),
      credit(1, 100),
      comes('chunk', { id: 1 }, '{"n":2}\n'),
      comes('end', { id: 1 }),
      stop(),
      exits({ stdout: 'closed\nshut down\n' }),
    ],
  },
  {
    title: 'a stream whose client leaves while it waits for credit is closed, and ends as cancelled',
    app: 'DOES',
    spec: SMALL,
    steps: [
      call(1, ['numbers', 1000]),
      comes('head', { id: 1 }),
      comes('chunk', { id: 1 }, '{"n":0}\n'),
      comes('chunk', { id: 1 }, '{"n":1}\n'),
      cancel(1),
      fails(1, 'SERVE_CANCELLED'),
      stop(),
      exits({ stdout: 'closed\nshut down\n' }),
    ],
  },
  {
    title: 'a stream that throws before its first chunk fails its call; later, an error comes behind the chunks',
    app: 'DOES',
    steps: [
      call(1, ['breaks', 0]),
      fails(1, 'SERVE_INFERENCE_FAILED', { detail: /halfway/ }),
      call(2, ['breaks', 1]),
      comes('head', { id: 2 }),
      comes('chunk', { id: 2 }, 'part'),
      fails(2, 'SERVE_INFERENCE_FAILED', { detail: /halfway/ }),
    ],
  },
  {
    title: 'a stream of a batch that waits for credit holds up no other call of it',
    app: 'BATCH',
    spec: { limits: { maxOutputBytes: 1000, streamWindowBytes: 1 } },
    steps: [
      calls(1, [[1, '"stream a"'], [2, '"stream b"'], [3, '3']]),
      calls(2, [[4, '4']]),
      inAnyOrder(
        [1, inTurn(comes('head', { id: 1 }), comes('chunk', { id: 1 }, 'a0'))],
        [2, inTurn(comes('head', { id: 2 }), comes('chunk', { id: 2 }, 'b0'))],
        [3, answers(3, { input: 3, of: 3, id: 'r3' })],
      ),
      credit(2, 100),
      comes('chunk', { id: 2 }, 'b1'),
      comes('chunk', { id: 2 }, 'b2'),
      comes('end', { id: 2 }),
      hasBegun(3),
      credit(1, 100),
      comes('chunk', { id: 1 }, 'a1'),
      comes('chunk', { id: 1 }, 'a2'),
      comes('end', { id: 1 }),
      answers(4, { input: 4, alone: true }),
    ],
  },
];

const CANCELS: readonly Conversation[] = [
  {
    title: 'a call that is cancelled before it begins ends at once, and is never noted',
    app: 'DOES',
    steps: [
      call(1, ['wait']),
      untilBegun(1),
      call(2, ['echo', 'waits behind it']),
      calls(3, [[3, '"', 9]]),
      cancel(2),
      fails(2, 'SERVE_CANCELLED', { runMs: 0 }),
      cancel(3),
      fails(3, 'SERVE_CANCELLED', { runMs: 0 }),
      hasBegun(1),
      cancel(1, 'the run timeout passed'),
      answers(1, 'the run timeout passed'),
      call(3, ['echo', 'the id is free again']),
      answers(3, 'the id is free again'),
    ],
  },
  {
    title: 'cancel and credit of a call that has ended, or never was, change nothing',
    app: 'DOES',
    steps: [
      call(1, ['echo', 1]),
      answers(1, 1),
      cancel(1),
      credit(1, 10),
      cancel(99),
      credit(99, 10),
      sends({ type: 'data', id: 1, text: true, last: true }, 'late'),
      call(2, ['echo', 2]),
      answers(2, 2),
    ],
  },
];

const TOGETHER: readonly Conversation[] = [
  {
    title: 'calls at the same time begin at once, are answered in any order, and a ping is answered between them',
    app: 'SEVERAL',
    steps: [
      call(1, ['wait', 'a']),
      call(2, ['wait', 'b']),
      untilBegun(2),
      sends({ type: 'ping', ref: 9 }),
      comes('pong', { ref: 9 }),
      call(3, ['open', 'b']),
      inAnyOrder([2, answers(2, 'opened')], [3, answers(3, null)]),
      call(4, ['open', 'a']),
      inAnyOrder([1, answers(1, 'opened')], [4, answers(4, null)]),
      hasBegun(4),
    ],
  },
  {
    title: 'behind the note are entries of the calls that run',
    app: 'SEVERAL',
    steps: [
      call(7, ['wait', 'a']),
      call(9, ['wait', 'b']),
      untilBegun(9),
      hasEntries(7, 9),
      cancel(7),
      answers(7, 'left'),
      cancel(9),
      answers(9, 'left'),
    ],
  },
  {
    title: 'a worker in doubt says that it retires while other calls run, and gives up when they have ended',
    app: 'SEVERAL',
    steps: [
      call(1, ['wait', 'a']),
      untilBegun(1),
      call(2, ['exhaust']),
      fails(2, 'SERVE_INFERENCE_FAILED', { kind: 'out-of-memory' }),
      call(3, ['exhaust']),
      fails(3, 'SERVE_INFERENCE_FAILED', { kind: 'out-of-memory' }),
      call(4, ['exhaust']),
      fails(4, 'SERVE_INFERENCE_FAILED', { kind: 'out-of-memory' }),
      comes('retiring', { reason: 'the app ran out of memory in 3 calls in a row' }),
      call(5, ['wait', 'b']),
      cancel(5),
      cancel(1),
      answers(1, 'left'),
      comes('fatal', { code: 'SERVE_WORKER_LOST', message: /^the app ran out of memory/ }),
      hasBegun(4),
      exits({ code: 1 }),
    ],
  },
  {
    title: 'stop lets the running calls end, and begins no other',
    app: 'SEVERAL',
    steps: [
      call(1, ['wait', 'a']),
      call(2, ['wait', 'b']),
      untilBegun(2),
      stop(),
      inAnyOrder([1, answers(1, 'left')], [2, answers(2, 'left')]),
      exits({}),
    ],
  },
];

const REPORTS: readonly Conversation[] = [
  {
    title: 'a line of the log comes before the ending of its call; metrics of no call in particular at any time',
    app: 'DOES',
    steps: [
      call(1, ['log'], { headers: `traceparent\n${TRACE}` }),
      comes('log', {
        level: 'warn',
        message: 'careful',
        requestId: 'r1',
        fields: JSON.stringify({ traceparent: TRACE, gb: 1.5 }),
      }),
      answers(1, null),
      call(2, ['count', 3]),
      inAnyOrder([OF_NO_CALL, comes('metrics', { metrics: [TOKENS] })], [2, answers(2, null)]),
    ],
  },
  {
    title: 'progress of a job is sent at once, and the last one before the ending; that of a waiting client is not',
    app: 'DOES',
    steps: [
      call(1, ['progress', [0.1, 0.2, 0.3]], { job: { id: 'j', attempt: 2 } }),
      comes('progress', { id: 1, fraction: 0.1, text: 'at 0.1' }),
      comes('progress', { id: 1, fraction: 0.3, text: 'at 0.3' }),
      answers(1, { id: 'j', attempt: 2 }),
      call(2, ['progress', [0.1]]),
      answers(2, null),
    ],
  },
  {
    title: 'a webhook is handed to the front, whole, and a waiting app learns when it has ended',
    app: 'DOES',
    steps: [
      call(1, ['webhook', [true, 'x'.repeat(299_998)]]),
      comes('webhook', {
        ref: FIRST_WEBHOOK_REF,
        url: 'https://example.com/hook',
        contentType: /^(application\/json)?$/,
        requestId: 'r1',
        timeoutMs: 1500,
        retries: 0,
        wait: true,
        bodyBytes: 300_000,
      }),
      comes('body', { id: FIRST_WEBHOOK_REF }, `${'x'.repeat(300_000 - MAX_FRAGMENT_BYTES - 1)}"`),
      sends({ type: 'webhookDone', ref: FIRST_WEBHOOK_REF, outcome: 'failed' }),
      answers(1, 'sent'),
      call(2, ['webhook', [false, 1]]),
      comes('webhook', { wait: false, bodyBytes: 1 }, '1'),
      sends({ type: 'webhookDone', ref: FIRST_WEBHOOK_REF + 1, outcome: 'taken' }),
      answers(2, 'sent'),
    ],
  },
  {
    title: 'nothing that the app writes to its stdout and stderr disturbs the frames',
    app: 'DOES',
    steps: [
      call(1, ['write']),
      answers(1, null),
      stop(),
      exits({ stdout: 'out\nraw\nshut down\n', stderr: 'err\n' }),
    ],
  },
  {
    title: 'with a print mark, each print is marked with its call',
    app: 'DOES',
    spec: { printMark: 'k3' },
    steps: [
      call(1, ['print', 'one']),
      call(2, ['print', 'two']),
      answers(1, null),
      answers(2, null),
      stop(),
      exits({
        // eslint-disable-next-line no-control-regex -- a mark is made of control characters
        stdout: /^\x1fk3 r1\x1fone\n(\x1fk3 \x1f)?\x1fk3 r2\x1ftwo\n\x1fk3 \x1fshut down\n$/,
      }),
    ],
  },
  {
    title: 'a program that the app starts inherits none of the descriptors',
    app: 'DOES',
    steps: [call(1, ['descriptors']), answers(1, '')],
  },
];

const TALK: Partial<Call> = { route: '/talk', path: '/talk', format: 'websocket' };
const connect =
  (id: number): Step =>
  ({ worker }) =>
    worker.call(id, Buffer.alloc(0), TALK);
const say = (id: number, text: string | Uint8Array, last = true): Step =>
  sends({ type: 'data', id, text: true, last }, text);

const SOCKETS: readonly Conversation[] = [
  {
    title: 'a WebSocket gives and takes credit, in parts that may be cut in a character, and reports when it waits',
    app: 'SOCKET',
    spec: { limits: { maxOutputBytes: 1000, streamWindowBytes: 1000 } },
    steps: [
      connect(1),
      comes('credit', { id: 1, bytes: 1000 }),
      comes('waiting', { id: 1, received: 0 }),
      say(1, 'one'),
      comes('credit', { id: 1, bytes: 3 + DATA_OVERHEAD_BYTES }),
      comes('data', { id: 1, text: true, last: true }, 'one'),
      comes('waiting', { id: 1, received: 1 }),
      say(1, Buffer.from([0xc3]), false),
      comes('credit', { id: 1, bytes: 1 + DATA_OVERHEAD_BYTES }),
      say(1, Buffer.from([0xa9])),
      comes('credit', { id: 1, bytes: 1 + DATA_OVERHEAD_BYTES }),
      comes('data', { id: 1 }, 'é'),
      comes('waiting', { id: 1, received: 3 }),
      sends({ type: 'data', id: 1, text: false, last: true }, Buffer.from([0, 1])),
      comes('credit', { id: 1, bytes: 2 + DATA_OVERHEAD_BYTES }),
      comes('data', { id: 1, text: false }, '\0\x01'),
      comes('waiting', { id: 1, received: 4 }),
      say(1, 'bye'),
      comes('credit', { id: 1, bytes: 3 + DATA_OVERHEAD_BYTES }),
      comes('close', { id: 1, code: 4000, reason: 'so long' }),
      comes('end', { id: 1 }),
    ],
  },
  {
    title: 'a WebSocket sends no more than its credit, and each message costs 64 bytes more',
    app: 'SOCKET',
    spec: { limits: { maxOutputBytes: 1000, streamWindowBytes: 3 } },
    steps: [
      connect(1),
      comes('credit', { id: 1, bytes: 3 }),
      comes('waiting', { id: 1 }),
      say(1, 'one'),
      comes('credit', { id: 1 }),
      comes('data', { id: 1 }, 'one'),
      comes('waiting', { id: 1 }),
      say(1, 'two'),
      comes('credit', { id: 1 }),
      credit(1, DATA_OVERHEAD_BYTES),
      sends({ type: 'ping', ref: 1 }),
      comes('pong', { ref: 1 }),
      credit(1, 1),
      comes('data', { id: 1 }, 'two'),
      comes('waiting', { id: 1 }),
      say(1, 'return'),
      comes('credit', { id: 1 }),
      comes('end', { id: 1 }),
    ],
  },
  {
    title: 'a long message to the client of a WebSocket comes in parts',
    app: 'SOCKET',
    steps: [
      connect(1),
      comes('credit', { id: 1 }),
      comes('waiting', { id: 1 }),
      say(1, 'y'.repeat(MAX_FRAGMENT_BYTES), false),
      comes('credit', { id: 1 }),
      say(1, 'z'),
      comes('credit', { id: 1 }),
      comes('data', { id: 1, text: true, last: false }, 'y'.repeat(MAX_FRAGMENT_BYTES)),
      credit(1, MAX_FRAGMENT_BYTES + DATA_OVERHEAD_BYTES),
      comes('data', { id: 1, text: true, last: true }, 'z'),
      comes('waiting', { id: 1, received: 2 }),
      say(1, 'return'),
      comes('credit', { id: 1 }),
      comes('end', { id: 1 }),
    ],
  },
  {
    title: 'a WebSocket whose client leaves ends as cancelled, and one whose function throws as failed',
    app: 'SOCKET',
    steps: [
      connect(1),
      comes('credit', { id: 1 }),
      comes('waiting', { id: 1 }),
      cancel(1),
      fails(1, 'SERVE_CANCELLED'),
      connect(2),
      comes('credit', { id: 2 }),
      comes('waiting', { id: 2 }),
      say(2, 'throw'),
      comes('credit', { id: 2 }),
      fails(2, 'SERVE_INFERENCE_FAILED', { detail: /asked for/ }),
      stop(),
      exits({ stdout: 'left\n' }),
    ],
  },
];

const ENDS: readonly Conversation[] = [
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
  ['more calls at once than a route takes', calls(1, [[1, '1'], [2, '2']]), /a batch of 2 calls; the route \/ takes at most 1/],
] as const;

const BROKEN_PROTOCOLS: readonly Conversation[] = [
  {
    title: 'a worker that runs calls at the same time takes no batch',
    app: 'SEVERAL',
    steps: [calls(1, [[1, '1'], [2, '2']]), dies(/^The front broke the protocol: /)],
  },
  ...BROKEN.map(
    ([what, step, said]): Conversation => ({
      title: `a worker that reads ${what} reports it and dies`,
      app: 'DOES',
      steps: [step, dies(new RegExp(`^The front broke the protocol: .*${said.source}`))],
    }),
  ),
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

export const CONVERSATIONS: readonly Conversation[] = [
  ...STARTS,
  ...FAILED_STARTS,
  ...CALLS,
  ...BATCHES,
  ...STREAMS,
  ...CANCELS,
  ...TOGETHER,
  ...REPORTS,
  ...SOCKETS,
  ...ENDS,
  ...BROKEN_PROTOCOLS,
];
