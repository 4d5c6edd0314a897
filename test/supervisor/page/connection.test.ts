/** One connection to the live data, from its request to each of its ends. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { startStore, type Store } from '../../../supervisor/page/app/store.js';
import { readLive, type AnyLiveEvent } from '../../../supervisor/page/live/connection.js';
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

/** The end of a connection, without its time. */
async function read(received: (event: AnyLiveEvent) => void = () => {}): Promise<object> {
  const end = await readLive('_k/live', new AbortController().signal, () => {}, received);
  return { ...end, ...('since' in end && { since: 0 }) };
}

function cut(problem: string, retryAfterMs: number | null = null): object {
  return { state: 'waiting', problem, since: 0, retryAfterMs };
}

const event = (name: string, data: unknown): string => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
const HISTORY = event('samples', liveHistory());
const SNAPSHOT = event('snapshot', liveSnapshot());

for (const [title, answer, expected] of [
  [
    'the server ends',
    { pieces: [HISTORY, event('end', { reason: 'drained' })] },
    { state: 'ended', reason: 'drained' },
  ],
  ['the key is wrong', { status: 401 }, { state: 'needs key' }],
  [
    'there are too many viewers',
    { status: 503, headers: { 'Retry-After': '7' } },
    cut('The server has no room for another viewer, or it is ending.', 7000),
  ],
  ['the server has no page', { status: 404 }, cut('The server has answered with status 404.')],
  ['the stream ends without a word', { pieces: [HISTORY] }, cut('The connection to the server was cut.')],
  [
    'the data is not that of this page',
    { pieces: ['event: snapshot\ndata: {\n\n'], then: 'is silent' },
    cut('The server sends data that this page does not understand: reload the page.'),
  ],
  ['the stream breaks', { pieces: [], then: 'breaks' }, cut('The connection to the server was cut.')],
] satisfies readonly (readonly [string, Answer, object])[])
  test(`the outcome if ${title}`, async (t) => {
    answerWith(t, answer);
    assert.deepEqual(await read(), expected);
  });

test('events come in their order, however they are cut', async (t) => {
  const text = HISTORY + SNAPSHOT;
  answerWith(t, { pieces: [text.slice(0, 40), text.slice(40, 200), text.slice(200)] });
  const seen: AnyLiveEvent[] = [];
  await read((event) => seen.push(event));
  assert.deepEqual(
    seen.map(({ name }) => name),
    ['samples', 'snapshot'],
  );
  assert.deepEqual(seen[1]?.data, JSON.parse(JSON.stringify(liveSnapshot())));
});

test('a server that is silent for 15 s is given up', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  answerWith(t, { pieces: [HISTORY], then: 'is silent' });
  const end = await read(() => queueMicrotask(() => t.mock.timers.tick(15_000)));
  assert.deepEqual(end, cut('The server has sent nothing for a while.'));
});

test('a server that cannot be reached', async (t) => {
  t.mock.method(globalThis, 'fetch', () => Promise.reject(new TypeError('fetch failed')));
  assert.deepEqual(await read(), cut('The server cannot be reached.'));
});

test('if snapshots are missing, the page gets everything anew, at most once a minute', async (t) => {
  const page = { hidden: false, addEventListener: () => {} };
  Object.assign(globalThis, { document: page });
  t.after(() => Reflect.deleteProperty(globalThis, 'document'));
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  const streams: ReadableStreamDefaultController<Uint8Array>[] = [];
  t.mock.method(globalThis, 'fetch', () => {
    const body = new ReadableStream<Uint8Array>({ start: (stream) => void streams.push(stream) });
    return Promise.resolve(new Response(body));
  });
  const until = async (isTrue: () => boolean): Promise<void> => {
    while (!isTrue()) await new Promise(setImmediate);
  };
  let store: Store | null = null;
  startStore((next) => (store = next));
  const shows = (number: number): boolean => store?.history?.at === number;
  const send = (text: string): void => streams.at(-1)?.enqueue(new TextEncoder().encode(text));
  const snapshot = (number: number): string => event('snapshot', liveSnapshot({ number, at: number }));
  await until(() => streams.length === 1);
  send(HISTORY + snapshot(1) + snapshot(3));
  await until(() => shows(3));
  nowMs = 59_000;
  send(snapshot(4));
  await until(() => shows(4));
  assert.equal(streams.length, 1);
  nowMs = 61_000;
  send(snapshot(5));
  await until(() => streams.length === 2);
  send(HISTORY + snapshot(1));
  await until(() => shows(1));
});
