/** Batches, and streams, which those of a batch are too. */
import {
  answers,
  call,
  calls,
  cancel,
  comes,
  credit,
  exits,
  fails,
  hasBegun,
  inAnyOrder,
  inTurn,
  sends,
  stop,
  type Conversation,
} from '../conversation.js';
import { SMALL } from './calls.js';

export const BATCHES: readonly Conversation[] = [
  {
    title: 'the calls of a frame begin together behind one note, and each gets its own answer',
    app: 'BATCH',
    steps: [
      calls(1, [
        [1, '"a"'],
        [2, ''],
        [3, '"c"'],
      ]),
      answers(1, { input: 'a', of: 3, id: 'r1' }),
      answers(2, { input: null, of: 3, id: 'r2' }),
      answers(3, { input: 'c', of: 3, id: 'r3' }),
      hasBegun(3),
    ],
  },
  {
    title:
      'a batch begins once its last frame and all bodies are there, without the calls cancelled until then',
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
      calls(1, [
        [1, '"a"'],
        [2, '"error"'],
        [3, '{"cut'],
        [4, '4'],
      ]),
      inAnyOrder(
        [1, answers(1, { input: 'a', of: 3, id: 'r1' })],
        [2, fails(2, 'SERVE_INFERENCE_FAILED', { detail: /only this one/ })],
        [3, fails(3, 'SERVE_BAD_BODY')],
        [4, answers(4, { input: 4, of: 3, id: 'r4' })],
      ),
    ],
  },
  {
    title:
      'a batch function that throws, or returns too few entries, fails all calls of its batch, once each',
    app: 'BATCH',
    steps: [
      calls(1, [
        [1, '"throw"'],
        [2, '2'],
      ]),
      comes('log', { level: 'warn', message: /all 2 calls of its batch fail\. .*repeatable/ }),
      fails(1, 'SERVE_INFERENCE_FAILED', { detail: /of one of them/ }),
      fails(2, 'SERVE_INFERENCE_FAILED', { detail: /of one of them/ }),
      calls(2, [
        [3, '"throw"'],
        [4, '2'],
      ]),
      fails(3, 'SERVE_INFERENCE_FAILED'),
      fails(4, 'SERVE_INFERENCE_FAILED'),
      calls(2, [
        [5, '"drop"'],
        [6, '2'],
      ]),
      fails(5, 'SERVE_OUTPUT_INVALID', { message: /1 entry for 2 calls/ }),
      fails(6, 'SERVE_OUTPUT_INVALID', { message: /1 entry for 2 calls/ }),
    ],
  },
  {
    title: 'a batch of an app that is repeatable runs again in halves, and only the guilty call fails',
    app: 'REPEATABLE',
    steps: [
      calls(1, [
        [1, '"a"'],
        [2, '"bad"'],
        [3, '"c"'],
        [4, '"d"'],
      ]),
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
        calls(1, [
          [id, '"exhaust"'],
          [id + 1, '2'],
        ]),
        fails(id, 'SERVE_INFERENCE_FAILED', { kind: 'out-of-memory' }),
        fails(id + 1, 'SERVE_INFERENCE_FAILED', { kind: 'out-of-memory' }),
      ]),
      comes('fatal', { message: /^the app ran out of memory in 3 calls in a row/ }),
      exits({ code: 1 }),
    ],
  },
];

export const STREAMS: readonly Conversation[] = [
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
    title:
      'a stream that throws before its first chunk fails its call; later, an error comes behind the chunks',
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
      calls(1, [
        [1, '"stream a"'],
        [2, '"stream b"'],
        [3, '3'],
      ]),
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
