import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test, type TestContext } from 'node:test';
import fc from 'fast-check';
import { Channel } from '../../protocol/channel.js';
import { MAX_FRAGMENT_BYTES, type Call, type Message } from '../../protocol/messages.js';
import type { InferenceContext } from '../../worker/api/types.js';
import { RunLoop } from '../../worker/run-loop.js';
import { Tap, deferred, nextTurn, type Received } from '../protocol/streams.js';
import { callWith } from './calls.js';

const WINDOW_BYTES = 1000;
const MAX_OUTPUT_BYTES = 2 * 1024 * 1024;

type Handle = (input: unknown, ctx: InferenceContext) => unknown;

/** A run loop over a real channel; the front is a tap on what it writes. */
class Bench {
  readonly tap = new Tap();
  readonly loop: RunLoop;
  /** Inputs the app has seen, in order. */
  readonly seen: unknown[] = [];
  readonly printsOf: string[] = [];
  readonly #notes: { id: number; afterWrites: number }[] = [];
  idleCalls = 0;
  /** What it tells of calls that came and of having answered all. */
  readonly comings: string[] = [];

  constructor(handle: Handle) {
    const refuse = (): never => assert.fail('the front did nothing');
    const channel = new Channel(new PassThrough(), this.tap, {
      onMessage: refuse,
      onEnd: refuse,
      onWriteError: refuse,
    });
    this.loop = new RunLoop({
      channel,
      app: {
        routes: [],
        modelOptions: {},
        example: null,
        init: () => {},
        shutdown: () => {},
        handle: (_route, input, ctx) => {
          this.seen.push(input);
          return handle(input, ctx);
        },
      },
      worker: { index: 0, gpu: null, threads: 1 },
      prints: {
        run: (requestId, code) => {
          this.printsOf.push(requestId);
          return code();
        },
      },
      maxOutputBytes: MAX_OUTPUT_BYTES,
      streamWindowBytes: WINDOW_BYTES,
      noteBegun: (id) => this.#notes.push({ id, afterWrites: this.tap.writes.length }),
      onIdleAfterRetire: () => (this.idleCalls += 1),
      idleness: {
        onCall: () => this.comings.push('call'),
        onIdle: () => this.comings.push('idle'),
      },
    });
  }

  /** Hands in a call whose JSON body is `input`. */
  call(id: number, input: unknown = id, fields: Partial<Call> = {}): void {
    const body = Buffer.from(JSON.stringify(input));
    this.loop.accept(callWith({ id, requestId: `r${id}`, bodyBytes: body.length, ...fields }), [body]);
    this.loop.pump();
  }

  get messages(): Message[] {
    return this.tap.received.map(({ message }) => message);
  }

  /** Such as `begin 1`, `result 1`. */
  get story(): string[] {
    const begun = (writes: number): string[] =>
      this.#notes.filter(({ afterWrites }) => afterWrites === writes).map(({ id }) => `begin ${id}`);
    const told = this.tap.writes.flatMap((write, i) => [...begun(i), ...readStory(write)]);
    return [...told, ...begun(this.tap.writes.length)];
  }

  get begun(): number[] {
    return this.#notes.map(({ id }) => id);
  }

  of(type: Message['type'], id: number): Received | undefined {
    return this.tap.received.find(
      ({ message }) => message.type === type && (message as { id?: number }).id === id,
    );
  }

  text(id: number): string {
    const chunks = this.tap.received.filter(({ message }) => message.type === 'chunk' && message.id === id);
    return Buffer.concat(chunks.map(({ body }) => body)).toString();
  }

  /** Resolves once the call has its ending. */
  async ended(id: number): Promise<void> {
    // Not counted in turns: a format that is loaded on first use takes as many as the machine is slow.
    const limitMs = Date.now() + 10_000;
    while (Date.now() < limitMs) {
      if (this.endings(id) > 0) return;
      await nextTurn();
    }
    assert.fail(`call ${id} has no ending: ${this.story.join('; ')}`);
  }

  endings(id: number): number {
    const endings = ['result', 'end', 'error'];
    return this.messages.filter(
      (message) => endings.includes(message.type) && (message as { id: number }).id === id,
    ).length;
  }
}

function told(message: Message): string {
  if (message.type === 'error') return `error ${message.id} ${message.code}`;
  return 'id' in message ? `${message.type} ${message.id}` : message.type;
}

function readStory(bytes: Buffer): string[] {
  const tap = new Tap();
  tap.writes.push(bytes);
  return tap.received.map(({ message }) => told(message));
}

/** Time stands still unless the test moves it. */
function frozenClock(t: TestContext): { advance(ms: number): void } {
  let nowMs = 1000;
  t.mock.method(performance, 'now', () => nowMs);
  return { advance: (ms) => (nowMs += ms) };
}

test('a call is begun, run with its input and answered', () => {
  const bench = new Bench((input) => ({ got: input }));
  bench.call(1, 'hi');
  assert.deepEqual(bench.seen, ['hi']);
  assert.deepEqual(bench.story, ['begin 1', 'result 1']);
  const result = bench.of('result', 1);
  assert.equal(result?.body.toString(), '{"got":"hi"}');
  assert.ok(result?.message.type === 'result' && result.message.status === 200);
  assert.ok(result.message.contentType === 'application/json' && result.message.runMs >= 0);
});

test('calls run one at a time, in the order they came', async () => {
  const gates = [deferred(), deferred(), deferred()];
  const bench = new Bench((input) => gates[input as number]?.promise);
  for (const id of [0, 1, 2]) bench.call(id);
  assert.deepEqual(bench.seen, [0]);
  gates[2]?.resolve();
  gates[1]?.resolve();
  await nextTurn();
  assert.deepEqual(bench.seen, [0], 'the first is still running');
  gates[0]?.resolve();
  await bench.ended(2);
  assert.deepEqual(bench.seen, [0, 1, 2]);
  assert.deepEqual(bench.story, ['begin 0', 'result 0', 'begin 1', 'result 1', 'begin 2', 'result 2']);
});

test('it says that a call came, and that all that came are answered', async () => {
  const last = deferred<number>();
  const bench = new Bench((input) => (input === 3 ? last.promise : input));
  bench.call(1);
  bench.call(2);
  bench.call(3);
  bench.call(4);
  assert.deepEqual(bench.comings, ['call', 'idle', 'call', 'idle', 'call', 'call']);
  last.resolve(0);
  await bench.ended(4);
  assert.deepEqual(bench.comings.slice(6), ['idle']);
});

test('a call is noted as begun before the app sees it', () => {
  const bench: Bench = new Bench(() => bench.story.join());
  bench.call(1);
  assert.equal(bench.of('result', 1)?.body.toString(), '"begin 1"');
});

test('a call begins only once the answer of the last one has left this process', async () => {
  const bench = new Bench((input) => input);
  bench.tap.hold();
  bench.call(1);
  bench.call(2);
  await nextTurn();
  assert.deepEqual(bench.story, ['begin 1', 'result 1'], 'written, not taken');
  bench.tap.release();
  await bench.ended(2);
  assert.deepEqual(bench.story, ['begin 1', 'result 1', 'begin 2', 'result 2']);
});

test('after a call that held the thread, a pending cancel is heard before the next call begins', async (t) => {
  const clock = frozenClock(t);
  const gate = deferred();
  const bench = new Bench(async () => {
    await gate.promise;
    clock.advance(2);
  });
  bench.call(1);
  bench.call(2);
  gate.resolve();
  // Still in this turn of the loop, in which no cancel was read.
  for (let tick = 0; tick < 100 && bench.endings(1) === 0; tick += 1) await Promise.resolve();
  assert.equal(bench.endings(1), 1);
  bench.loop.cancel(2, 'the client left');
  await nextTurn();
  await nextTurn();
  assert.deepEqual(bench.seen, [1]);
  assert.deepEqual(bench.story, ['begin 1', 'result 1', 'error 2 SERVE_CANCELLED']);
});

test('a call that is cancelled in the queue ends at once and the app never sees it', async () => {
  const gate = deferred();
  const bench = new Bench(() => gate.promise);
  for (const id of [1, 2, 3]) bench.call(id);
  bench.loop.cancel(2, 'the client left');
  assert.deepEqual(bench.story, ['begin 1', 'error 2 SERVE_CANCELLED']);
  gate.resolve();
  await bench.ended(3);
  assert.deepEqual(bench.seen, [1, 3]);
});

test('a call that is cancelled while it runs is told why, and still has exactly one ending', async () => {
  const bench = new Bench(
    (_input, ctx) =>
      new Promise((_resolve, reject) => {
        ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason as Error));
      }),
  );
  bench.call(1);
  bench.loop.cancel(1, 'the client left');
  await bench.ended(1);
  assert.deepEqual(bench.story, ['begin 1', 'error 1 SERVE_INFERENCE_FAILED']);
  const error = bench.of('error', 1)?.message;
  assert.match(error?.type === 'error' ? error.detail : '', /AbortError: the client left/);
});

test('a cancel or credit for a call that is answered, or unknown, changes nothing', () => {
  const bench = new Bench(() => 1);
  bench.call(1);
  bench.loop.cancel(1, 'late');
  bench.loop.cancel(99, 'never was');
  bench.loop.grantCredit(1, 10);
  assert.deepEqual(bench.story, ['begin 1', 'result 1']);
});

test('the next call begins only after the last fragment of a large result is out of this process', async () => {
  const large = new Uint8Array(4 * MAX_FRAGMENT_BYTES);
  const gate = deferred();
  const bench = new Bench((input) => (input === 1 ? gate.promise.then(() => large) : 2));
  bench.call(1);
  bench.call(2);
  bench.tap.hold();
  gate.resolve();
  while (bench.tap.writes.length < 1) await nextTurn();
  for (let fragment = 0; fragment < 2; fragment += 1) {
    assert.deepEqual(bench.seen, [1]);
    bench.tap.step();
    await nextTurn();
  }
  assert.deepEqual(bench.seen, [1]);
  bench.tap.release();
  await bench.ended(2);
  assert.deepEqual(bench.story, ['begin 1', 'result 1', 'body 1', 'body 1', 'body 1', 'begin 2', 'result 2']);
});

test('retire lets the running call finish, begins no other, and then says so once', async () => {
  const gate = deferred();
  const bench = new Bench(() => gate.promise);
  bench.call(1);
  bench.call(2);
  bench.loop.retire(null);
  bench.call(3);
  assert.equal(bench.idleCalls, 0);
  gate.resolve();
  await bench.ended(1);
  assert.equal(bench.idleCalls, 1);
  await nextTurn();
  assert.deepEqual(bench.story, ['begin 1', 'result 1'], 'calls that never begun are left to the front');
  assert.equal(bench.idleCalls, 1);
});

test('retire of an idle loop says so at once', () => {
  const bench = new Bench(() => 1);
  bench.loop.retire('stop');
  assert.equal(bench.idleCalls, 1);
});

test('retire with a reason aborts the running call, without one it does not', () => {
  for (const reason of ['the server is stopping', null]) {
    let signal: AbortSignal | undefined;
    const bench = new Bench((_input, ctx) => {
      signal = ctx.signal;
      return new Promise(() => {});
    });
    bench.call(1);
    bench.loop.retire(reason);
    assert.equal(signal?.aborted, reason !== null);
  }
});

/** What a careless app may reject with. */
async function rejectWithText(): Promise<never> {
  await Promise.resolve();
  throw 'boom' as unknown as Error;
}

for (const [what, handle, detail] of [
  [
    'throws',
    () => {
      throw new Error('boom');
    },
    /^Error: boom\n/,
  ],
  ['rejects', () => Promise.reject(new Error('boom')), /^Error: boom\n/],
  [
    'throws undefined',
    () => {
      throw undefined as unknown as Error;
    },
    /^thrown value: undefined$/,
  ],
  ['rejects with text', () => nextTurn().then(() => rejectWithText()), /^boom$/],
] as const) {
  test(`an app that ${what} fails that call with its words for the log only, and the next call runs`, async () => {
    const bench = new Bench((input) => (input === 1 ? handle() : 'fine'));
    bench.call(1);
    bench.call(2);
    await bench.ended(2);
    assert.deepEqual(bench.story, ['begin 1', 'error 1 SERVE_INFERENCE_FAILED', 'begin 2', 'result 2']);
    const error = bench.of('error', 1)?.message;
    assert.ok(error?.type === 'error');
    assert.equal(error.message, 'The model failed on this call.');
    assert.match(error.detail, detail);
  });
}

for (const [what, body, fields] of [
  ['JSON', '{"a":', {}],
  ['MessagePack', '\xc1', { contentType: 'application/msgpack' }],
  ['multipart', 'x', { contentType: 'multipart/form-data; boundary=x' }],
] as const) {
  test(`a malformed ${what} body is refused, the app never sees it, and the next call runs`, async () => {
    const bench = new Bench(() => 'fine');
    bench.loop.accept(callWith({ id: 1, ...fields }), [Buffer.from(body, 'latin1')]);
    bench.loop.pump();
    bench.call(2);
    await bench.ended(2);
    assert.deepEqual(bench.seen, [2]);
    assert.deepEqual(bench.story, ['begin 1', 'error 1 SERVE_BAD_BODY', 'begin 2', 'result 2']);
  });
}

test('a body in pieces is joined, an empty one is null', () => {
  const bench = new Bench(() => 1);
  bench.loop.accept(callWith({ id: 1 }), [Buffer.from('{"a"'), Buffer.from(':1}')]);
  bench.loop.accept(callWith({ id: 2 }), []);
  bench.loop.pump();
  assert.deepEqual(bench.seen, [{ a: 1 }, null]);
});

for (const [what, output, code, message] of [
  ['cannot be encoded', { n: 2n ** 64n }, 'SERVE_OUTPUT_INVALID', /output\.n is a BigInt/],
  [
    'is too large',
    new Uint8Array(MAX_OUTPUT_BYTES + 1),
    'SERVE_OUTPUT_TOO_LARGE',
    /2097153 bytes; --max-output allows 2097152/,
  ],
  ['is Response.error()', Response.error(), 'SERVE_OUTPUT_INVALID', /has no status/],
] as const) {
  test(`an output that ${what} fails the call with ${code}`, async () => {
    const bench = new Bench((input) => (input === 1 ? output : 'fine'));
    bench.call(1);
    bench.call(2);
    await bench.ended(2);
    assert.deepEqual(bench.story, ['begin 1', `error 1 ${code}`, 'begin 2', 'result 2']);
    const error = bench.of('error', 1)?.message;
    assert.match(error?.type === 'error' ? error.message : '', message);
  });
}

test('texts of an error are cut so that they always fit into a frame head', async () => {
  const bench = new Bench(() => ({ ['😀'.repeat(400_000)]: 2n ** 64n }));
  bench.call(1);
  await bench.ended(1);
  assert.deepEqual(bench.story, ['begin 1', 'error 1 SERVE_OUTPUT_INVALID']);
});

test('a thenable that calls back twice, or throws after it did, is answered once', async () => {
  const twice = {
    then(resolve: (value: unknown) => void) {
      resolve('first');
      resolve('second');
      throw new Error('and this');
    },
  };
  const bench = new Bench((input) => (input === 1 ? twice : 'fine'));
  bench.call(1);
  bench.call(2);
  await bench.ended(2);
  assert.deepEqual(bench.story, ['begin 1', 'result 1', 'begin 2', 'result 2']);
  assert.equal(bench.of('result', 1)?.body.toString(), '"first"');
});

test('a Response keeps its status, type and headers', async () => {
  const bench = new Bench(() => new Response('made', { status: 201, headers: { 'x-model': 'v2' } }));
  bench.call(1);
  await bench.ended(1);
  const { message, body } = bench.of('result', 1) as Received;
  assert.ok(message.type === 'result');
  assert.deepEqual(
    [message.status, message.contentType, message.headers],
    [201, 'text/plain;charset=UTF-8', 'x-model\nv2'],
  );
  assert.equal(body.toString(), 'made');
});

test('a generator streams: head, chunks, end, and only then the next call begins', async () => {
  const bench = new Bench((input) => (input === 1 ? ['a', 'b'].values() : 2));
  bench.call(1);
  bench.call(2);
  await bench.ended(2);
  assert.deepEqual(bench.story, ['begin 1', 'head 1', 'chunk 1', 'chunk 1', 'end 1', 'begin 2', 'result 2']);
  assert.equal(bench.text(1), 'ab');
});

test('a stream stops at its window and goes on with credit', async (t) => {
  frozenClock(t);
  function* letters(): Generator<string> {
    for (const letter of 'abcd') yield letter.repeat(WINDOW_BYTES);
  }
  const bench = new Bench(letters);
  bench.call(1);
  await nextTurn();
  await nextTurn();
  assert.equal(bench.text(1), 'a'.repeat(WINDOW_BYTES));
  bench.loop.grantCredit(1, 1);
  await nextTurn();
  assert.equal(bench.text(1).length, 2 * WINDOW_BYTES, 'one byte of credit lets one chunk go');
  bench.loop.grantCredit(1, WINDOW_BYTES - 1);
  await nextTurn();
  assert.equal(bench.text(1).length, 2 * WINDOW_BYTES, 'the debt is paid first');
  bench.loop.grantCredit(1, 10 * WINDOW_BYTES);
  await bench.ended(1);
  assert.equal(bench.text(1).length, 4 * WINDOW_BYTES);
  assert.equal(bench.story.at(-1), 'end 1');
});

test('a stream whose client leaves while it waits for credit is returned and ends as cancelled', async () => {
  let cleaned = false;
  async function* endless(): AsyncGenerator<string> {
    try {
      for (;;) yield await Promise.resolve('x'.repeat(WINDOW_BYTES));
    } finally {
      cleaned = true;
    }
  }
  const bench = new Bench((input) => (input === 1 ? endless() : 2));
  bench.call(1);
  bench.call(2);
  await nextTurn();
  bench.loop.cancel(1, 'the client left');
  await bench.ended(2);
  assert.equal(cleaned, true);
  assert.deepEqual(bench.story, [
    'begin 1',
    'head 1',
    'chunk 1',
    'error 1 SERVE_CANCELLED',
    'begin 2',
    'result 2',
  ]);
});

test('a stream that throws midway ends with an error after what it gave', async () => {
  function* broken(): Generator<string> {
    yield 'a';
    throw new Error('halfway');
  }
  const bench = new Bench((input) => (input === 1 ? broken() : 2));
  bench.call(1);
  bench.call(2);
  await bench.ended(2);
  assert.deepEqual(bench.story, [
    'begin 1',
    'head 1',
    'chunk 1',
    'error 1 SERVE_INFERENCE_FAILED',
    'begin 2',
    'result 2',
  ]);
});

test('a chunk is the bytes at the time of the yield, though the app uses its buffer again', async () => {
  const buffer = Buffer.alloc(40 * WINDOW_BYTES);
  function* reusing(_input: unknown, ctx: InferenceContext): Generator<Uint8Array> {
    bench.tap.hold();
    ctx.log.info('this write is never taken, so the chunks wait behind it');
    for (const letter of 'abc') yield buffer.fill(letter);
  }
  const bench = new Bench(reusing);
  bench.call(1);
  bench.loop.grantCredit(1, 1e9);
  await nextTurn();
  bench.loop.grantCredit(1, 1e9);
  await nextTurn();
  bench.tap.release();
  await bench.ended(1);
  const expected = [...'abc'].map((letter) => letter.repeat(buffer.length)).join('');
  assert.ok(bench.text(1) === expected);
});

test('prints are attributed to the request, those of a generator too', async () => {
  const bench = new Bench((input) => (input === 1 ? 'value' : ['a'].values()));
  bench.call(1);
  bench.call(2);
  await bench.ended(2);
  assert.deepEqual(bench.printsOf, ['r1', 'r2', 'r2']);
});

test('ctx.log lines carry the request id and leave while the call runs', async () => {
  const gate = deferred();
  const bench = new Bench((_input, ctx) => {
    ctx.log.info('working', { step: 1 });
    return gate.promise;
  });
  bench.call(7);
  assert.deepEqual(bench.story, ['begin 7', 'log']);
  const log = bench.messages[0];
  assert.ok(log?.type === 'log' && log.requestId === 'r7' && log.fields === '{"step":1}');
  gate.resolve();
  await bench.ended(7);
});

const OUTCOMES = {
  value: () => 1,
  late: () => nextTurn().then(() => 2),
  throws: () => {
    throw new Error('boom');
  },
  rejects: () => nextTurn().then(() => Promise.reject(new Error('boom'))),
  stream: () => ['a', 'b'].values(),
  slowStream: async function* () {
    yield 'x'.repeat(2 * WINDOW_BYTES);
    await nextTurn();
    yield 'y';
  },
  large: () => new Uint8Array(3 * MAX_FRAGMENT_BYTES),
  unencodable: () => 2n ** 64n,
  response: () => new Response('r'),
} as const;

test('whatever calls do and whenever they are cancelled, each has one ending, and begins are in order', async () => {
  const outcome = fc.constantFrom(...(Object.keys(OUTCOMES) as (keyof typeof OUTCOMES)[]));
  const step = fc.record({ outcome, cancelAfter: fc.option(fc.nat(3)), pauseTurns: fc.nat(2) });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
      const bench = new Bench((input) => OUTCOMES[input as keyof typeof OUTCOMES]());
      for (const [i, { outcome: input, cancelAfter, pauseTurns }] of steps.entries()) {
        bench.call(i, input);
        if (cancelAfter !== null) bench.loop.cancel(Math.max(0, i - cancelAfter), 'the client left');
        for (let turn = 0; turn < pauseTurns; turn += 1) await nextTurn();
      }
      for (const i of steps.keys()) {
        for (let turn = 0; turn < 100 && bench.endings(i) === 0; turn += 1) {
          bench.loop.grantCredit(i, 1e9);
          await nextTurn();
        }
      }
      const { begun } = bench;
      assert.deepEqual(
        begun,
        begun.toSorted((a, b) => a - b),
      );
      for (const i of steps.keys()) assert.equal(bench.endings(i), 1, bench.story.join('; '));
    }),
    { numRuns: 60 },
  );
});
