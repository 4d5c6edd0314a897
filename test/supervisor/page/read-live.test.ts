/** One connection to the live data, from its request to each of its ends. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { readLive, type AnyLiveEvent, type Outcome } from '../../../supervisor/page/live/read-live.js';
import { liveHistory, liveSnapshot } from '../../helpers/live-data.js';

interface Answer {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  /** Pieces of the body; after them the body ends, breaks off or goes on without a word. */
  readonly pieces?: readonly string[];
  readonly then?: 'ends' | 'breaks' | 'is silent';
}

/** Answers requests of the page. */
function answerWith(
  t: TestContext,
  { status = 200, headers = {}, pieces = [], then = 'ends' }: Answer,
): void {
  t.mock.method(globalThis, 'fetch', (_path: string, { signal }: { signal: AbortSignal }) => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
        if (then === 'ends') controller.close();
        if (then === 'breaks') controller.error(new Error('broken'));
        signal.addEventListener('abort', () => controller.error(signal.reason));
      },
    });
    return Promise.resolve(new Response(body, { status, headers }));
  });
}

function read(seen: AnyLiveEvent[], takes: (event: AnyLiveEvent) => boolean = () => true): Promise<Outcome> {
  return readLive('_k/live', {}, new AbortController().signal, {
    began: () => {},
    received: (event) => {
      seen.push(event);
      return takes(event);
    },
  });
}

const event = (name: string, data: unknown): string => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
const HISTORY = event('samples', liveHistory());
const SNAPSHOT = event('snapshot', liveSnapshot());

for (const [title, answer, expected] of [
  [
    'the server ends',
    { pieces: [HISTORY, event('end', { reason: 'drained' })] },
    { kind: 'ended', reason: 'drained' },
  ],
  ['the key is wrong', { status: 401 }, { kind: 'refused key' }],
  [
    'there are too many viewers',
    { status: 503, headers: { 'Retry-After': '7' } },
    {
      kind: 'cut',
      problem: 'The server has no room for another viewer, or it is ending.',
      retryAfterMs: 7000,
    },
  ],
  [
    'the server has no page',
    { status: 404 },
    { kind: 'cut', problem: 'The server has answered with status 404.', retryAfterMs: null },
  ],
  [
    'the stream ends without a word',
    { pieces: [HISTORY] },
    { kind: 'cut', problem: 'The connection to the server was cut.', retryAfterMs: null },
  ],
  [
    'the data is not that of this page',
    { pieces: ['event: snapshot\ndata: {\n\n'], then: 'is silent' },
    {
      kind: 'cut',
      problem: 'The server sends data that this page does not understand: reload the page.',
      retryAfterMs: null,
    },
  ],
  [
    'the stream breaks',
    { pieces: [], then: 'breaks' },
    { kind: 'cut', problem: 'The connection to the server was cut.', retryAfterMs: null },
  ],
] satisfies readonly (readonly [string, Answer, Outcome])[])
  test(`the outcome if ${title}`, async (t) => {
    answerWith(t, answer);
    assert.deepEqual(await read([]), expected);
  });

test('events come in their order, however they are cut', async (t) => {
  const text = HISTORY + SNAPSHOT;
  answerWith(t, { pieces: [text.slice(0, 40), text.slice(40, 200), text.slice(200)] });
  const seen: AnyLiveEvent[] = [];
  await read(seen);
  assert.deepEqual(
    seen.map(({ name }) => name),
    ['samples', 'snapshot'],
  );
  assert.deepEqual(seen[1]?.data, JSON.parse(JSON.stringify(liveSnapshot())));
});

test('if snapshots are missing the connection ends, so that the page gets everything anew', async (t) => {
  answerWith(t, { pieces: [HISTORY, SNAPSHOT], then: 'is silent' });
  assert.deepEqual(await read([], ({ name }) => name === 'samples'), { kind: 'missed' });
});

test('a server that is silent for 15 s is given up', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  answerWith(t, { pieces: [HISTORY], then: 'is silent' });
  const seen: AnyLiveEvent[] = [];
  const outcome = read(seen, () => {
    queueMicrotask(() => t.mock.timers.tick(15_000));
    return true;
  });
  assert.deepEqual(await outcome, {
    kind: 'cut',
    problem: 'The server has sent nothing for a while.',
    retryAfterMs: null,
  });
});

test('a server that cannot be reached', async (t) => {
  t.mock.method(globalThis, 'fetch', () => Promise.reject(new TypeError('fetch failed')));
  assert.deepEqual(await read([]), {
    kind: 'cut',
    problem: 'The server cannot be reached.',
    retryAfterMs: null,
  });
});
