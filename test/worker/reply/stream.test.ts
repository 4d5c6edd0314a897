import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { MAX_FRAGMENT_BYTES } from '../../../protocol/wire/limits.js';
import type { ReplyHead } from '../../../protocol/wire/messages.js';
import { iteratorOf, sendStream, type StreamOut } from '../../../worker/reply/stream.js';
import { deferred, nextTurn } from '../../protocol/streams.js';
import { serveError } from '../refusals.js';

/** Receives a stream as the front would: records everything, and grants credit on demand. */
class Client implements StreamOut {
  readonly heads: ReplyHead[] = [];
  readonly chunks: Buffer[] = [];
  cancelled = false;
  #creditBytes: number;
  #wake: (() => void) | null = null;

  constructor(creditBytes = Infinity) {
    this.#creditBytes = creditBytes;
  }

  get text(): string {
    return Buffer.concat(this.chunks).toString();
  }

  head(head: ReplyHead): void {
    this.heads.push(head);
  }

  chunk(bytes: Uint8Array): void {
    assert.equal(this.heads.length, 1, 'the head comes first');
    assert.ok(this.#creditBytes > 0, 'a chunk without credit');
    this.#creditBytes -= bytes.length;
    this.chunks.push(Buffer.from(bytes));
  }

  wait(): Promise<void> | null {
    if (this.#creditBytes > 0) return null;
    return new Promise((resolve) => (this.#wake = resolve));
  }

  grant(bytes: number): void {
    this.#creditBytes += bytes;
    this.#wake?.();
  }

  leave(): void {
    this.cancelled = true;
    this.#wake?.();
  }
}

function iterate(value: unknown): Iterator<unknown> | AsyncIterator<unknown> {
  const iterator = iteratorOf(value);
  assert.ok(iterator !== null, 'it does not stream');
  return iterator;
}

async function streamed(value: unknown, accept = '*/*'): Promise<Client> {
  const client = new Client();
  await sendStream(iterate(value), accept, null, client);
  return client;
}

function* sync(...items: unknown[]): Generator<unknown> {
  yield* items;
}

// eslint-disable-next-line require-yield -- it has no items
function* returning(value: unknown): Generator<never, unknown> {
  return value;
}

async function* later(...items: unknown[]): AsyncGenerator<unknown> {
  for (const item of items) {
    await nextTurn();
    yield item;
  }
}

for (const [what, value] of [
  ['a generator', sync(1)],
  ['an async generator', later(1)],
  ['the iterator of a list', [1].values()],
  ['an object with an async iterator', { [Symbol.asyncIterator]: () => later(1) }],
  ['a web stream', new ReadableStream()],
  ['a Node stream', Readable.from(['a'])],
] as const) {
  test(`${what} streams`, () => assert.notEqual(iteratorOf(value), null));
}

for (const [what, value] of [
  ['a list', [1]],
  ['a string', 'abc'],
  ['a boxed string', Object('abc')],
  ['a Map', new Map()],
  ['a Set', new Set()],
  ['bytes', new Uint8Array(1)],
  ['an object with a next of its own', { next: () => 1 }],
  ['an object that can only be iterated', { [Symbol.iterator]: () => sync(1) }],
  ['null', null],
  ['undefined', undefined],
  ['a function', () => 1],
] as const) {
  test(`${what} does not stream`, () => assert.equal(iteratorOf(value), null));
}

for (const [accept, contentType, text] of [
  ['text/event-stream', 'text/event-stream', 'data: one\n\ndata: {"n":2}\n\ndata: two\ndata: lines\n\n'],
  ['application/x-ndjson', 'application/x-ndjson', '"one"\n{"n":2}\n"two\\nlines"\n'],
  ['application/ndjson', 'application/x-ndjson', '"one"\n{"n":2}\n"two\\nlines"\n'],
  ['*/*', 'text/plain; charset=utf-8', 'one{"n":2}\ntwo\nlines'],
] as const) {
  for (const [how, make] of [
    ['a generator', sync],
    ['an async generator', later],
  ] as const) {
    test(`${how} becomes ${contentType} for Accept ${accept}`, async () => {
      const client = await streamed(make('one', { n: 2 }, 'two\nlines'), accept);
      assert.equal(client.text, text);
      assert.deepEqual(
        client.heads.map((head) => [head.status, head.contentType]),
        [[200, contentType]],
      );
    });
  }
}

for (const breaks of ['\r\n', '\r', '\n']) {
  test(`a line break ${JSON.stringify(breaks)} inside an event cannot end it`, async () => {
    const client = await streamed(sync(`a${breaks}${breaks}b`), 'text/event-stream');
    assert.equal(client.text, 'data: a\ndata: \ndata: b\n\n');
  });
}

for (const [what, first, contentType] of [
  ['bytes', new Uint8Array([1]), 'application/octet-stream'],
  ['text', 'a', 'text/plain; charset=utf-8'],
  ['values', { a: 1 }, 'application/x-ndjson'],
] as const) {
  test(`a stream of ${what} is ${contentType} when the client sends no Accept header`, async () => {
    assert.equal((await streamed(sync(first))).heads[0]?.contentType, contentType);
  });
}

test('a stream without items is a whole reply with a head and no chunk', async () => {
  const client = await streamed(sync());
  assert.equal(client.heads.length, 1);
  assert.equal(client.chunks.length, 0);
});

test('the return value of a generator is not an item, and does not determine the type of an empty stream', async () => {
  const { heads } = await streamed(returning('done'));
  assert.equal(heads[0]?.contentType, 'application/octet-stream');
  assert.equal((await streamed(sync(undefined))).heads[0]?.contentType, 'application/x-ndjson');
});

test('values in a stream are encoded as in an answer: typed arrays, NaN, undefined', async () => {
  const client = await streamed(
    sync({ v: new Float32Array([1]) }, Number.NaN, undefined),
    'application/x-ndjson',
  );
  assert.equal(client.text, '{"v":[1]}\nnull\nnull\n');
});

for (const [contentType, text] of [
  ['text/event-stream', 'data: mine\n\ndata: {"n":1}\n\n'],
  ['text/event-stream; charset=utf-8', 'data: mine\n\ndata: {"n":1}\n\n'],
  ['application/x-ndjson', 'data: mine\n\n{"n":1}\n'],
] as const) {
  test(`with a fixed head of ${contentType}, texts are raw and other values are written for it`, async () => {
    const client = new Client();
    const items = ['data: mine\n\n', { n: 1 }].values();
    await sendStream(items, '', { status: 200, contentType, headers: '', phrase: '' }, client);
    assert.equal(client.text, text);
  });
}

test('a fixed head is used as it is, and its items are raw', async () => {
  const client = new Client();
  const head: ReplyHead = { status: 201, contentType: 'audio/wav', headers: 'X-A\n1', phrase: '' };
  await sendStream(iterate(sync(Buffer.from('ab'), 'cd')), 'text/event-stream', head, client);
  assert.deepEqual(client.heads, [head]);
  assert.equal(client.text, 'abcd');
});

test('an item over one fragment leaves in fragments', async () => {
  const bytes = Buffer.alloc(2 * MAX_FRAGMENT_BYTES + 5, 7);
  const client = await streamed(sync(bytes));
  assert.deepEqual(
    client.chunks.map(({ length }) => length),
    [MAX_FRAGMENT_BYTES, MAX_FRAGMENT_BYTES, 5],
  );
  assert.ok(Buffer.concat(client.chunks).equals(bytes));
});

test('the generator does not run while the client has no credit', async (t) => {
  t.mock.method(performance, 'now', () => 0); // the stream never yields to the event loop
  const asked: number[] = [];
  function* counting(): Generator<string> {
    for (let n = 0; n < 5; n += 1) {
      asked.push(n);
      yield 'four';
    }
  }
  const client = new Client(8);
  const done = sendStream(iterate(counting()), '*/*', null, client);
  await nextTurn();
  assert.deepEqual(asked, [0, 1, 2], 'two items within the credit, the third waits to be sent');
  assert.equal(client.text, 'fourfour');
  client.grant(1);
  await nextTurn();
  assert.equal(client.text, 'fourfourfour', 'a chunk may take the credit below zero');
  client.grant(Infinity);
  await done;
  assert.equal(client.chunks.length, 5);
});

test('a generator that throws first sends no head: the caller still gets a whole error', async () => {
  const broken = {
    next: async () => {
      await nextTurn();
      throw new Error('no weights');
    },
  };
  const client = new Client();
  await assert.rejects(sendStream(broken, '*/*', null, client), /no weights/);
  assert.equal(client.heads.length, 0);
});

test('a generator that throws midway rejects after its earlier items', async () => {
  function* broken(): Generator<string> {
    yield 'a';
    throw new Error('halfway');
  }
  const client = new Client();
  await assert.rejects(sendStream(iterate(broken()), '*/*', null, client), /halfway/);
  assert.equal(client.text, 'a');
});

for (const [what, makeInner] of [
  ['a generator', (items: unknown[]) => sync(...items)],
  ['an async generator', (items: unknown[]) => later(...items)],
] as const) {
  test(`${what} gets one return(), and no further next(), when the client leaves`, async () => {
    const returned: string[] = [];
    const asked: number[] = [];
    const inner = makeInner([1, 2, 3, 4]);
    const watched = {
      next: () => {
        asked.push(asked.length);
        if (asked.length === 3) client.leave();
        return inner.next();
      },
      return: () => {
        returned.push('return');
        return { done: true, value: undefined };
      },
    } as unknown as Iterator<unknown>;
    const client = new Client();
    await sendStream(watched, '*/*', null, client);
    assert.deepEqual(returned, ['return']);
    assert.equal(asked.length, 3);
    assert.equal(client.text, '1\n2\n');
  });
}

test('a client that leaves while a chunk waits for credit lets the generator clean up', async () => {
  const cleaned = deferred();
  async function* holding(): AsyncGenerator<string> {
    try {
      for (;;) yield await Promise.resolve('x');
    } finally {
      cleaned.resolve();
    }
  }
  const client = new Client(1);
  const done = sendStream(iterate(holding()), '*/*', null, client);
  await nextTurn();
  client.leave();
  await done;
  await cleaned.promise;
  assert.equal(client.text, 'x');
});

test('a client that left before the start asks nothing of the iterator but to return', async () => {
  const log: string[] = [];
  const watched = {
    next: () => log.push('next'),
    return: () => log.push('return'),
  } as unknown as Iterator<unknown>;
  const client = new Client();
  client.leave();
  await sendStream(watched, '*/*', null, client);
  assert.deepEqual(log, ['return']);
  assert.equal(client.heads.length, 0);
});

test('an item that cannot be encoded fails the stream and lets the generator clean up', async () => {
  let cleaned = false;
  function* holding(): Generator<unknown> {
    try {
      yield 1;
      yield { id: 2n ** 64n };
      yield 3;
    } finally {
      cleaned = true;
    }
  }
  const client = new Client();
  await assert.rejects(
    sendStream(iterate(holding()), 'application/x-ndjson', null, client),
    serveError('SERVE_OUTPUT_INVALID', /output\.id is a BigInt/),
  );
  assert.equal(cleaned, true);
  assert.equal(client.text, '1\n');
});

test('a first item that cannot be encoded fails before the head has left', async () => {
  const client = new Client();
  await assert.rejects(
    sendStream([new Map()].values(), 'application/x-ndjson', null, client),
    serveError('SERVE_OUTPUT_INVALID', /output is a Map/),
  );
  assert.equal(client.heads.length, 0);
});

test('a synchronous generator that never waits lets other work of the worker in', async () => {
  const client = new Client();
  function* busy(): Generator<string> {
    for (;;) yield 'x';
  }
  setImmediate(() => client.leave());
  await sendStream(iterate(busy()), '*/*', null, client);
  assert.ok(client.chunks.length > 0);
});
