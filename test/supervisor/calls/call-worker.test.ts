import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MONOTONIC_OFFSET_MS } from '../../../protocol/wire/begun-note.js';
import { ServeError } from '../../../protocol/errors.js';
import { FIRST_WEBHOOK_REF, MAX_FRAGMENT_BYTES, STREAM_WINDOW_BYTES } from '../../../protocol/wire/limits.js';
import type { Message } from '../../../protocol/wire/messages.js';
import type { Call } from '../../../supervisor/dispatch/call.js';
import { Tap, nextTurn } from '../../protocol/streams.js';
import { OK, newCall } from '../dispatch/calls.js';
import { HandWorker } from './held-call.js';

/** A worker over a channel that records its writes; the test writes the notes and answers of the worker. */
function setUp() {
  const story: string[] = [];
  const tap = new Tap();
  const note = { id: 0, atMs: 0, times: new Map<number, number>() };
  const held = new HandWorker(
    tap,
    () => note,
    ({ message }, runMs) => story.push(`${message.requestId} has ended${runMs === null ? '' : ' well'}`),
  );
  const outcome = (id: string) => (result: string) => story.push(`${id} ${result}`);
  return {
    calls: held,
    tap,
    story,
    /** Calls named by their letters, as one batch. */
    assign: (names: string, body = Buffer.alloc(0)): Call[] => {
      const calls = [...names].map((name) => newCall(name, { body, onSettled: outcome(name) }));
      for (const call of calls) call.sendTo(held);
      held.assign(calls);
      return calls;
    },
    noteBegun: (id: number): void => {
      note.id = id;
      note.atMs = MONOTONIC_OFFSET_MS + performance.now();
    },
    answer: (id: number): boolean => held.take({ type: 'result', id, ...OK, bodyBytes: 0, runMs: 1 }, []),
    cancelled: (id: number): boolean =>
      held.take({ ...FAILED, type: 'error', id, code: 'SERVE_CANCELLED', runMs: 0 }, []),
    /** Calls by their letters, and whether the batch ends: `ab-`, `c.`. */
    frames: (): string[] => tap.received.map(({ message }) => frameText(message)),
    /** The worker's entry for a call that began at this time of our clock. */
    noteTime: (id: number, atMs: number): void => {
      note.times.set(id, MONOTONIC_OFFSET_MS + atMs);
    },
    close: (): void => held.close(),
  };
}

const FAILED = { message: '', detail: '', status: 0, kind: '' } as const;

function frameText(message: Message): string {
  if (message.type !== 'call') return message.type;
  return message.calls.map(({ requestId }) => requestId).join('') + (message.last ? '.' : '-');
}

test('a batch is one frame with its own number, and a new one does not wait for its end', async () => {
  const { assign, frames, tap, calls: held, close } = setUp();
  assign('abc');
  assign('d');
  await nextTurn(); // a busy worker gets what a turn of the event loop brings in one write
  assert.deepEqual(frames(), ['abc.', 'd.']);
  const numbers = tap.received.map(({ message }) => message.type === 'call' && message.batch);
  assert.deepEqual(numbers, [1, 4]);
  assert.deepEqual([held.load, held.heldBatches], [4, 2]);
  close();
});

test('the calls of a batch end in any order; its place is free with the last one', () => {
  const { assign, noteBegun, answer, story, calls: held, close } = setUp();
  assign('abc');
  noteBegun(3);
  for (const id of [2, 3]) answer(id);
  assert.deepEqual([held.load, held.heldBatches], [1, 1]);
  answer(1);
  assert.deepEqual([held.load, held.heldBatches, held.finishedCalls], [0, 0, 3]);
  const told = ['b', 'c', 'a'].flatMap((name) => [`${name} has ended well`, `${name} ok`]);
  assert.deepEqual(story, told);
  close();
});

test('one call of a batch may fail, and the others do not', () => {
  const { assign, noteBegun, answer, calls: held, story, close } = setUp();
  assign('ab');
  noteBegun(2);
  held.take({ ...FAILED, type: 'error', id: 1, code: 'SERVE_INFERENCE_FAILED', runMs: 1 }, []);
  answer(2);
  assert.deepEqual(story, ['a SERVE_INFERENCE_FAILED', 'a has ended', 'b has ended well', 'b ok']);
  close();
});

test('a body that needs several frames has the calls of its batch in frames of their own, and the end in another', () => {
  const { calls: held, frames, close } = setUp();
  const bodies = [10, MAX_FRAGMENT_BYTES + 1, 10].map((bytes) => Buffer.alloc(bytes));
  held.assign(bodies.map((body, i) => newCall('abc'[i] as string, { body })));
  assert.deepEqual(frames(), ['a-', 'b-', 'body', 'c-', '.']);
  close();
});

test('calls whose bodies or heads do not fit into one frame are split over frames', () => {
  for (const options of [{ body: Buffer.alloc(100_000) }, { headers: `X-Long\n${'é'.repeat(180_000)}` }]) {
    const { calls: held, frames, close } = setUp();
    held.assign([...'abcde'].map((name) => newCall(name, options)));
    const split = options.body === undefined ? ['a-', 'b-', 'c-', 'd-', 'e.'] : ['ab-', 'cd-', 'e.'];
    assert.deepEqual(frames(), split);
    close();
  }
});

test('a call of a batch that was sent ahead is cancelled alone, and keeps its place until the worker has ended it', async () => {
  const { assign, calls: held, frames, cancelled, story, close } = setUp();
  assign('a');
  const [, c] = assign('bcd');
  held.abandon(c as Call, 'the client left');
  await nextTurn();
  assert.deepEqual(frames(), ['a.', 'bcd.', 'cancel']);
  assert.equal(held.load, 4);
  cancelled(3);
  assert.equal(held.load, 3);
  assert.ok(story.includes('c has ended'));
  assert.deepEqual(
    held.heldCalls().map(({ message }) => message.requestId),
    ['a', 'b', 'd'],
  );
  close();
});

test('a call that waits behind a long body is taken out of its batch without a message, also if it is the last one', async () => {
  const { assign, calls: held, frames, tap, story, close } = setUp();
  tap.hold();
  assign('a', Buffer.alloc(8 * MAX_FRAGMENT_BYTES));
  const [b, , d] = assign('bcd');
  await nextTurn();
  for (const call of [b, d]) held.abandon(call as Call, 'the client left');
  assert.deepEqual(story, ['b has ended', 'd has ended']);
  tap.release();
  await nextTurn();
  assert.deepEqual(
    frames().filter((frame) => frame !== 'body'),
    ['a.', 'c-', '.'],
  );
  close();
});

test('a death loses all calls of the batch that had begun; those of the next one come back, in their order', () => {
  const { assign, noteBegun, calls: held } = setUp();
  assign('ab');
  assign('cd');
  noteBegun(2);
  const lost = held
    .lose()
    .map((call) => `${call.message.requestId} ${call.checkBegun() ? 'began' : 'waited'}`);
  assert.deepEqual(lost, ['a began', 'b began', 'c waited', 'd waited']);
  assert.deepEqual([held.load, held.heldBatches], [0, 0]);
  held.close();
});

test('if the note names a call whose client has left and which ends first, the others have begun all the same', () => {
  const { assign, noteBegun, cancelled, calls: held } = setUp();
  const [, , c] = assign('abc') as [Call, Call, Call];
  c.fail(new ServeError('SERVE_CANCELLED'));
  noteBegun(3);
  cancelled(3);
  assert.deepEqual(
    held.lose().map((call) => call.checkBegun()),
    [true, true],
  );
  held.close();
});

test('a note of the next batch means that the calls before it have begun too', () => {
  const { assign, noteBegun, calls: held } = setUp();
  assign('ab');
  assign('c');
  noteBegun(3);
  assert.deepEqual(
    held.heldCalls().map((call) => call.checkBegun()),
    [true, true, true],
  );
  held.close();
});

for (const [what, answers, detail] of [
  ['a call that it does not hold', [9], 'call 9 is not held by this worker'],
  ['a call of which there is no note', [3], 'an answer to call 3, which never began'],
  ['a call again', [1, 1], 'call 1 is not held by this worker'],
  ['a call of the batch behind', [1, 4], 'an answer to call 4, before those sent earlier have ended'],
] as const) {
  test(`a worker that answers ${what} breaks the protocol`, () => {
    const { assign, noteBegun, answer, close } = setUp();
    assign('abc');
    assign('d');
    noteBegun(2);
    const [last, ...before] = [...answers].reverse() as [number, ...number[]];
    for (const id of before) answer(id);
    assert.throws(() => answer(last), { code: 'SERVE_PROTOCOL', detail });
    close();
  });
}

test('messages about something else than a call are left to others', () => {
  const { calls: held } = setUp();
  assert.equal(held.take({ type: 'ready', initMs: 1 }, []), false);
  assert.equal(held.take({ type: 'body', id: FIRST_WEBHOOK_REF }, [Buffer.alloc(1)]), false);
});

test('a worker that ends a call inside its long result breaks the protocol', () => {
  const { assign, noteBegun, calls: held, close } = setUp();
  assign('a');
  noteBegun(1);
  held.take({ type: 'result', id: 1, ...OK, bodyBytes: 10, runMs: 1 }, [Buffer.alloc(5)]);
  const error = { ...FAILED, type: 'error', id: 1, code: 'SERVE_INFERENCE_FAILED', runMs: 1 } as const;
  assert.throws(() => held.take(error, []), { code: 'SERVE_PROTOCOL' });
  close();
});

test('batches of any sizes arrive whole and in order, each marked once, at its end', async () => {
  const size = fc.constantFrom(0, 1, 1000, 100_000, MAX_FRAGMENT_BYTES, MAX_FRAGMENT_BYTES + 1, 600_000);
  const batches = fc.array(fc.array(size, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(batches, async (sizes) => {
      const { calls: held, tap, close } = setUp();
      for (const batch of sizes) {
        held.assign(batch.map((bytes) => newCall('x', { body: Buffer.alloc(bytes, bytes % 251) })));
      }
      await nextTurn();
      assert.deepEqual(batchesIn(tap), sizes);
      close();
    }),
    { numRuns: 100 },
  );
});

/** Bytes of the bodies of each batch, as a worker puts them together. */
function batchesIn(tap: Tap): number[][] {
  const batches: number[][] = [];
  const bytes = new Map<number, number>();
  let open: { number: number; ids: number[] } | null = null;
  for (const { message, body } of tap.received) {
    if (message.type === 'body') bytes.set(message.id, (bytes.get(message.id) ?? 0) + body.length);
    if (message.type !== 'call') continue;
    open ??= { number: message.batch, ids: [] };
    assert.equal(message.batch, open.number, 'the frames of a batch follow each other');
    message.calls.forEach(({ id }, i) => bytes.set(id, message.inlineBytes[i] as number));
    open.ids.push(...message.calls.map(({ id }) => id));
    if (!message.last) continue;
    batches.push(open.ids);
    open = null;
  }
  assert.equal(open, null, 'the last batch has its mark');
  return batches.map((ids) => ids.map((id) => bytes.get(id) as number));
}

test('with several places, each call runs for itself: answers come in any order, and a note may name one that has ended', () => {
  const { assign, frames, noteBegun, answer, calls: held, story, close } = setUp();
  held.places = 3;
  const calls = ['a', 'b', 'c'].map((name) => assign(name)[0] as Call);
  assert.deepEqual(frames(), ['a.', 'b.', 'c.'], 'each leaves at once: its place is free');
  noteBegun(2);
  answer(2);
  assert.deepEqual(
    calls.map((call) => call.checkBegun()),
    [true, false, false],
    'b has ended, c has not begun',
  );
  noteBegun(3);
  for (const id of [3, 1]) answer(id);
  assert.deepEqual(
    story.filter((line) => !line.includes('ended')),
    ['b ok', 'c ok', 'a ok'],
  );
  assert.deepEqual([held.load, held.finishedCalls], [0, 3]);
  close();
});

test('the time at which a call began is that of its entry behind the note', (t) => {
  let nowMs = 1000;
  t.mock.method(performance, 'now', () => nowMs);
  const { assign, noteBegun, noteTime, calls: held, close } = setUp();
  held.places = 2;
  assign('a');
  assign('b');
  nowMs = 1030;
  noteTime(1, 1010);
  noteTime(2, 1020);
  noteBegun(2);
  assert.deepEqual(
    held.lookUpRunning().map(({ beganAtMs }) => Math.round(beganAtMs)),
    [1010, 1020],
  );
  close();
});

test('the calls that a worker will not begin are taken from it, in order, with what is left of their bodies', () => {
  const { assign, noteBegun, answer, calls: held, close } = setUp();
  held.places = 3;
  for (const name of ['a', 'b', 'c']) assign(name);
  noteBegun(1);
  assert.deepEqual(
    held.takeUnbegun().map(({ message }) => message.requestId),
    ['b', 'c'],
  );
  assert.equal(held.load, 1);
  answer(1);
  assert.deepEqual([held.load, held.heldBatches], [0, 0]);
  close();
});

test('a batch that a worker will not begin is taken from it as a whole, and the one that runs stays', () => {
  const { assign, noteBegun, answer, calls: held, story, close } = setUp();
  assign('ab');
  assign('cd');
  assign('ef');
  noteBegun(2);
  assert.deepEqual(
    held.takeUnbegun().map(({ message }) => message.requestId),
    ['c', 'd', 'e', 'f'],
  );
  assert.deepEqual([held.load, held.heldBatches], [2, 1]);
  answer(1);
  answer(2);
  assert.deepEqual([held.load, held.heldBatches], [0, 0]);
  assert.deepEqual(story, ['a has ended well', 'a ok', 'b has ended well', 'b ok']);
  close();
});

test('while calls wait for a worker whose places are all taken, each call that waits for its client holds them up', () => {
  const { assign, noteBegun, calls: held, close } = setUp();
  held.places = 2;
  assign('a');
  assign('b');
  noteBegun(2);
  for (const { calls } of held.active) calls[0]?.countUnread(STREAM_WINDOW_BYTES);
  const holdUps = (): boolean[] => held.active.map(({ holdsUp }) => holdsUp);
  assert.deepEqual(holdUps(), [false, false]);
  held.callersWait = true;
  assert.deepEqual(holdUps(), [true, true]);
  held.callersWait = false;
  assert.deepEqual(holdUps(), [false, false]);
  close();
});

test('messages of the client of a WebSocket go to the worker, and end the wait of its app', () => {
  const { assign, frames, noteBegun, calls: held, story, close } = setUp();
  const [call] = assign('a') as [Call];
  const none = (): void => {};
  const waiting = (): void => void story.push('waiting');
  call.conversation = { data: none, credit: none, waiting, goAway: none, close: none };
  noteBegun(1);
  held.sendData(call, { text: false, last: true }, Buffer.from('hi'));
  assert.deepEqual(frames(), ['a.', 'data']);
  held.take({ type: 'waiting', id: 1, received: 0 }, []); // sent before it came
  assert.deepEqual(story, []);
  held.take({ type: 'waiting', id: 1, received: 1 }, []);
  assert.deepEqual(story, ['waiting']);
  close();
});
