/** WebSockets. */
import { DATA_OVERHEAD_BYTES, MAX_FRAGMENT_BYTES } from '../../../protocol/wire/limits.js';
import type { Call } from '../../../protocol/wire/messages.js';
import {
  cancel,
  comes,
  credit,
  exits,
  fails,
  sends,
  stop,
  type Conversation,
  type Step,
} from '../conversation.js';

const TALK: Partial<Call> = { route: '/talk', path: '/talk', format: 'websocket' };
const connect =
  (id: number): Step =>
  ({ worker }) =>
    worker.call(id, Buffer.alloc(0), TALK);
const say = (id: number, text: string | Uint8Array, last = true): Step =>
  sends({ type: 'data', id, text: true, last }, text);

export const SOCKETS: readonly Conversation[] = [
  {
    title:
      'a WebSocket gives and takes credit, in parts that may be cut in a character, and reports when it waits',
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
