/** The client of `banana-serve/client`: repeats, errors, limits and streams, against a server of a test's own. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test, type TestContext } from 'node:test';
import { ServeError, client, type ModelClient } from '../client.js';
import { deadUrl } from './helpers/held-port.js';
import { startReceiver, type Receiver } from './helpers/receiver.js';
import { eventually } from './helpers/server.js';

type Write = (response: ServerResponse) => unknown;

const json =
  (value: unknown, status = 200, headers = {}): Write =>
  (response) =>
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(value));

/** An error as the server writes it. */
const refusal = (code: string, begun: boolean, headers = {}, more = {}): Write =>
  json({ error: { code, message: 'why', begun, ...more } }, 503, headers);

const stream =
  (type: string, text: string, end: (response: ServerResponse) => unknown): Write =>
  (response) => {
    response.writeHead(200, { 'Content-Type': type });
    response.write(text, () => end(response));
  };

/** A model whose server gives these answers, the last one again and again. */
async function answering(
  t: TestContext,
  ...answers: readonly Write[]
): Promise<{ model: ModelClient; receiver: Receiver }> {
  const receiver = await startReceiver(t, (response, count) =>
    answers[Math.min(count, answers.length) - 1]?.(response),
  );
  return { model: client(receiver.url), receiver };
}

async function errorOf(promise: Promise<unknown>): Promise<ServeError> {
  const error: unknown = await promise.then(
    () => assert.fail('it was answered'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof ServeError, String(error));
  return error;
}

async function allOf(items: AsyncIterable<unknown>): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const item of items) all.push(item);
  return all;
}

const SOON = { 'Retry-After-Ms': '1' };

for (const [name, answers, requests, code] of [
  ['was refused before it began is sent again', [refusal('SERVE_QUEUE_FULL', false, SOON)], 2, null],
  [
    'has a time in seconds is sent again',
    [refusal('SERVE_QUEUE_FULL', false, { 'Retry-After': '0' })],
    2,
    null,
  ],
  ['has begun is not sent again', [refusal('SERVE_WORKER_LOST', true, SOON)], 1, 'SERVE_WORKER_LOST'],
  ['has no time to come again is not sent again', [refusal('SERVE_DEADLINE', false)], 1, 'SERVE_DEADLINE'],
  ['a proxy refused is not sent again', [json('busy', 503, SOON)], 1, 'SERVE_HTTP_ERROR'],
  [
    'is refused three times is not sent again',
    Array.from({ length: 3 }, () => refusal('SERVE_QUEUE_FULL', false, SOON)),
    3,
    'SERVE_QUEUE_FULL',
  ],
] as const)
  test(`a call that ${name}`, async (t) => {
    const { model, receiver } = await answering(t, ...answers, json('done'));
    if (code === null) assert.equal(await model('in'), 'done');
    else assert.equal((await errorOf(model('in'))).code, code);
    assert.equal(receiver.arrivals.length, requests);
  });

test('a call is not sent again later than its limit', async (t) => {
  const { model } = await answering(t, refusal('SERVE_QUEUE_FULL', false, { 'Retry-After': '30' }));
  const error = await errorOf(model('in', { timeoutMs: 20_000 }));
  assert.deepEqual([error.code, error.retryAfterMs], ['SERVE_QUEUE_FULL', 30_000]);
});

test('a job is sent again under its key, even if nobody knows whether it was stored', async (t) => {
  const { model, receiver } = await answering(
    t,
    refusal('SERVE_NOT_KEPT', true, SOON),
    json({}, 202, { 'X-Banana-Job-Id': 'j1' }),
    json({}, 202, { 'X-Banana-Job-Id': 'j1' }),
    json([1], 202), // the app's own status
  );
  const job = await model.job('in');
  assert.deepEqual([job.id, await job.result()], ['j1', [1]]);
  const [first, second, ...polls] = receiver.arrivals;
  assert.equal(first?.headers['prefer'], 'respond-async');
  assert.match(String(first?.headers['idempotency-key']), /^\d+(-\d+){3}$/);
  assert.equal(first?.headers['idempotency-key'], second?.headers['idempotency-key']);
  assert.deepEqual(new Set(polls.map(({ path }) => path)), new Set(['/_k/jobs/j1/result?wait=50s']));
});

test("timeoutMs ends the wait for a job's result, however often it asks", async (t) => {
  const { model } = await answering(t, json({}, 202, { 'X-Banana-Job-Id': 'j1' }));
  const { result } = await model.job('in');
  const { code, begun } = await errorOf(result({ timeoutMs: 50 }));
  assert.deepEqual([code, begun], ['SERVE_DEADLINE', true]);
});

test("a job's progress is what its events tell, each report once", async (t) => {
  const events = [
    null,
    { fraction: 0.5, text: '' },
    { fraction: 0.5, text: '' },
    { fraction: 1, text: 'all' },
  ];
  const text = events.map((progress) => `data: ${JSON.stringify({ progress })}\n\n`).join(':\n\n');
  const { model } = await answering(
    t,
    json({}, 202, { 'X-Banana-Job-Id': 'j1' }),
    stream('text/event-stream', text, (response) => response.end()),
  );
  const { progress } = await model.job('in');
  assert.deepEqual(await allOf(progress), events.slice(2));
});

test('an error has code, message, issues and begun', async (t) => {
  const issues = [{ path: ['a', 0], message: 'too long' }];
  const body = { error: { code: 'SERVE_INPUT_INVALID', message: 'a.0: too long', begun: false, issues } };
  const { model } = await answering(t, json(body, 422));
  const { name, code, message, begun, status, ...more } = await errorOf(model('in'));
  assert.deepEqual(
    [name, code, message, begun, status, more.issues],
    ['ServeError', 'SERVE_INPUT_INVALID', 'a.0: too long', false, 0, issues],
  );
});

test("an error that is not the server's has its text as the cause, and may have begun", async (t) => {
  const { model } = await answering(t, (response) => response.writeHead(409).end('taken'));
  const { code, status, cause, begun } = await errorOf(model('in'));
  assert.deepEqual([code, status, cause, begun], ['SERVE_HTTP_ERROR', 409, 'taken', true]);
});

test('a redirect is an error that names its address: fetch would turn the call into a GET, whose answer is another', async (t) => {
  const { model, receiver } = await answering(
    t,
    (response) => response.writeHead(301, { Location: 'https://models.example/' }).end(),
    json('a page'),
  );
  const { code, status, cause } = await errorOf(model('in'));
  assert.deepEqual([code, status, cause], ['SERVE_HTTP_ERROR', 301, 'https://models.example/']);
  assert.equal(receiver.arrivals.length, 1);
});

test('a stream that has a line that is no JSON is given up: its server is not kept waiting', async (t) => {
  let isLeft = false;
  const { model } = await answering(
    t,
    stream('application/x-ndjson', '1\n{"a":\n', (response) => response.on('close', () => (isLeft = true))),
  );
  const answer = (await model('in')) as AsyncIterable<unknown>;
  assert.equal((await errorOf(allOf(answer))).code, 'SERVE_HTTP_ERROR');
  await eventually(
    () => isLeft,
    60_000,
    () => 'the connection is still open',
  );
});

for (const [type, text] of [
  ['application/json', ''],
  ['application/x-ndjson', '{"a":'],
] as const)
  test(`${type} that is none is an error with the text as its cause`, async (t) => {
    const { model } = await answering(
      t,
      stream(type, text, (response) => response.end()),
    );
    const read = async (): Promise<unknown> => {
      const answer = await model('in');
      return type === 'application/json' ? answer : allOf(answer as AsyncIterable<unknown>);
    };
    const { code, status, cause } = await errorOf(read());
    assert.deepEqual([code, status, cause], ['SERVE_HTTP_ERROR', 200, text]);
  });

test('a cut connection counts as begun, an address where nobody listens does not', async (t) => {
  const { model, receiver } = await answering(t, (response) => response.destroy());
  const cut = await errorOf(model('in'));
  assert.deepEqual([cut.code, cut.begun, receiver.arrivals.length], ['SERVE_WORKER_LOST', true, 1]);
  const nobody = await errorOf(client(await deadUrl())('in'));
  assert.deepEqual([nobody.code, nobody.begun], ['SERVE_WORKER_LOST', false]);
});

for (const [type, text] of [
  ['application/x-ndjson', '{"a":1}\n"ä"\n'],
  ['text/event-stream', ': hold on\n\ndata: {"a":\ndata: 1}\n\ndata: ä\r\n\r\n'],
] as const) {
  test(`a stream of ${type} is an iterable`, async (t) => {
    const bytes = Buffer.from(text);
    const { model } = await answering(t, (response) => {
      response.writeHead(200, { 'Content-Type': type });
      response.write(bytes.subarray(0, -4), () => response.end(bytes.subarray(-4))); // within a character
    });
    assert.deepEqual(await allOf((await model('in')) as AsyncIterable<unknown>), [{ a: 1 }, 'ä']);
  });

  test(`a stream of ${type} that breaks has begun`, async (t) => {
    const { model } = await answering(
      t,
      stream(type, text, (response) => response.destroy()),
    );
    const items = (await model('in')) as AsyncIterableIterator<unknown>;
    assert.deepEqual(await items.next(), { done: false, value: { a: 1 } });
    await items.next();
    const error = await errorOf(items.next());
    assert.deepEqual([error.code, error.begun], ['SERVE_WORKER_LOST', true]);
    assert.equal((await items.next()).done, true);
  });
}

test('an event of an error is the error of the stream', async (t) => {
  const text =
    'data: 1\n\nevent: error\ndata: {"error":{"code":"SERVE_INFERENCE_FAILED","message":"why"}}\n\n';
  const { model } = await answering(
    t,
    stream('text/event-stream', text, (response) => response.end()),
  );
  const items = (await model('in')) as AsyncIterableIterator<unknown>;
  assert.equal((await items.next()).value, 1);
  const { code, begun } = await errorOf(items.next());
  assert.deepEqual([code, begun], ['SERVE_INFERENCE_FAILED', true]);
});

for (const begins of [true, false])
  test(`a stream that is left ${begins ? 'early' : 'before its first item'} ends for the server`, async (t) => {
    const { model, receiver } = await answering(
      t,
      stream('application/x-ndjson', '1\n', () => {}),
    );
    const items = (await model('in')) as AsyncIterableIterator<unknown>;
    if (begins) for await (const _ of items) break;
    else await items.return?.();
    await eventually(
      () => receiver.connections() === 0,
      60_000,
      () => 'the connection stays open',
    );
  });

const why = new Error('no longer needed');

for (const [name, begun, answer, begin] of [
  ['before it is sent', false, () => {}, null],
  ['while it runs', true, () => {}, (receiver: Receiver) => receiver.until(1)],
  [
    'while it waits to be sent again',
    false,
    refusal('SERVE_QUEUE_FULL', false, { 'Retry-After': '30' }),
    (_receiver: Receiver, isPaused: () => boolean) => eventually(isPaused, 60_000, () => 'it does not wait'),
  ],
] as const)
  test(`the signal gives a call up ${name}`, async (t) => {
    const { model, receiver } = await answering(t, answer);
    const { mock } = t.mock.method(globalThis, 'setTimeout');
    const control = new AbortController();
    if (begin === null) control.abort(why);
    const failed = errorOf(model('in', { signal: control.signal }));
    await begin?.(receiver, () => mock.calls.some(({ arguments: [, ms] }) => ms === 30_000));
    control.abort(why);
    const error = await failed;
    assert.deepEqual([error.code, error.cause, error.begun], ['SERVE_CANCELLED', why, begun]);
  });

test('the signal ends a stream', async (t) => {
  const { model } = await answering(
    t,
    stream('application/x-ndjson', '1\n', () => {}),
  );
  const control = new AbortController();
  const items = (await model('in', { signal: control.signal })) as AsyncIterableIterator<unknown>;
  await items.next();
  const failed = errorOf(items.next());
  control.abort(why);
  assert.deepEqual([(await failed).code, (await failed).cause], ['SERVE_CANCELLED', why]);
});

test('timeoutMs ends a call, and the server knows of it', async (t) => {
  const { model } = await answering(t, () => {});
  for (const timeoutMs of [50, 0.5])
    assert.equal((await errorOf(model('in', { timeoutMs }))).code, 'SERVE_DEADLINE');
  for (const timeoutMs of [0, -0.5]) {
    const { code, begun } = await errorOf(model('in', { timeoutMs }));
    assert.deepEqual([code, begun], ['SERVE_DEADLINE', false]);
  }
  const all = await answering(t, json(1), json(1));
  for (const timeoutMs of [60_000, Infinity]) assert.equal(await all.model('in', { timeoutMs }), 1);
  const [limited, unlimited] = all.receiver.arrivals.map(
    ({ headers }) => headers['x-request-timeout-seconds'],
  );
  assert.ok(Number(limited) > 0 && Number(limited) <= 60, String(limited));
  assert.equal(unlimited, undefined);
});

test('addresses, keys, and the types of bodies', async (t) => {
  const { receiver } = await answering(t, json(null), json(null), (response) => response.end('bytes'));
  const model = client(new URL(`${receiver.url}/models/m/`), { key: 'k' });
  await model(undefined);
  await model.route('x')({ a: 1 });
  assert.deepEqual(await model(new Uint8Array([1])), new TextEncoder().encode('bytes'));
  assert.deepEqual(
    receiver.arrivals.map(({ path, headers, body }) => [
      path,
      headers.authorization,
      headers['content-type'],
      body.toString('latin1'),
    ]),
    [
      ['/models/m/', 'Bearer k', 'application/json', ''],
      ['/models/m/x', 'Bearer k', 'application/json', '{"a":1}'],
      ['/models/m/', 'Bearer k', 'application/octet-stream', '\x01'],
    ],
  );
});
