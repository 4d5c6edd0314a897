/** Batches over the wire, served for real by a worker that answers the calls of each from the last to the first. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { serve, type ServerHandle } from '../../index.js';
import { needs } from '../helpers/needs.js';
import { ROOT, call, eventually, type Answer } from '../helpers/server.js';

const COMMAND = ['python3', '-B', '-u', `${ROOT}test/fixtures/python/worker.py`];
const OPTIONS = { timeout: 240_000, skip: needs('python3') };
const SIZE = 3;

interface Status {
  readonly model: {
    readonly workers: readonly { readonly pid: number }[];
    readonly queue: { readonly waiting: number };
    readonly inFlight: number;
  };
}

const modelOf = (server: ServerHandle): Status['model'] => (server.status() as Status).model;

/** A server with one worker and full batches, for there is time to fill each. */
async function started(t: TestContext, options = {}): Promise<ServerHandle> {
  const server = await serve({
    app: 'model.bin',
    workerCommand: COMMAND,
    port: 0,
    workers: 1,
    batchSize: SIZE,
    maxBatchDelay: 20_000,
    logLevel: 'error',
    ...options,
  });
  t.after(() => server.kill());
  await server.ready;
  return server;
}

const post = (server: ServerHandle, inputs: object, signal?: AbortSignal): Promise<Answer> =>
  call(server.url, JSON.stringify(inputs), { 'content-type': 'application/json' }, signal ? { signal } : {});

/** The answers of a batch whose calls came in this order; the worker answers the first one last. */
async function batchOf(
  server: ServerHandle,
  inputs: readonly object[],
  firstSignal?: AbortSignal,
): Promise<Promise<Answer>[]> {
  const answers = [post(server, inputs[0] as object, firstSignal)];
  for (const input of inputs.slice(1)) {
    await untilHeld(server, answers.length);
    answers.push(post(server, input));
  }
  return answers;
}

/** Resolves once so many calls are in the server: in line, or with the worker. */
function untilHeld(server: ServerHandle, calls: number): Promise<void> {
  const held = (): number => modelOf(server).inFlight + modelOf(server).queue.waiting;
  return eventually(
    () => held() === calls,
    60_000,
    () => `${held()} calls, not ${calls}`,
  );
}

const statusesOf = async (answers: readonly Promise<Answer>[]): Promise<number[]> =>
  (await Promise.all(answers)).map(({ status }) => status);

test('calls that come together begin together, and each has its own answer', OPTIONS, async (t) => {
  const server = await started(t);
  const answers = Array.from({ length: 4 * SIZE }, (_, n) => post(server, { n, together: 1 }));
  const told = (await Promise.all(answers)).map((answer) => answer.json<{ n: number; together: number }>());
  assert.deepEqual(
    told.map(({ n }) => n),
    Array.from({ length: 4 * SIZE }, (_, n) => n),
  );
  assert.ok(told.every(({ together }) => together === SIZE));
});

test('one call of a batch fails, and the others do not', OPTIONS, async (t) => {
  const server = await started(t);
  const answers = await batchOf(server, [{}, { fail: 'on purpose' }, {}]);
  assert.deepEqual(await statusesOf(answers), [200, 500, 200]);
});

test(
  'a death costs the calls of its batch that have no answer; those behind it run in the next worker',
  OPTIONS,
  async (t) => {
    const server = await started(t);
    const [{ pid }] = modelOf(server).workers as [{ pid: number }];
    const batch = await batchOf(server, [{}, { die: 1 }, {}]);
    const behind = Array.from({ length: SIZE }, () => post(server, { together: 1 }));
    assert.deepEqual(await statusesOf(batch), [500, 500, 200]);
    assert.deepEqual(await statusesOf(behind), [200, 200, 200]);
    assert.notEqual(modelOf(server).workers[0]?.pid, pid);
  },
);

test('a client that leaves takes its own call out of a batch that has not begun', OPTIONS, async (t) => {
  const server = await started(t);
  await Promise.all(Array.from({ length: 4 * SIZE }, () => post(server, {}))); // short calls: the next may be sent ahead
  const running = new AbortController();
  const [held, ...others] = await batchOf(server, [{ sleep: 30 }, {}, {}], running.signal);
  assert.deepEqual(await statusesOf(others), [200, 200]);
  const leaving = new AbortController();
  const left = post(server, {}, leaving.signal);
  const staying = [post(server, { together: 1 }), post(server, { together: 1 })];
  await untilHeld(server, 1 + SIZE);
  leaving.abort();
  await assert.rejects(left);
  running.abort();
  await assert.rejects(held as Promise<Answer>);
  const together = (await Promise.all(staying)).map((answer) => answer.json<{ together: number }>().together);
  assert.deepEqual(together, [SIZE - 1, SIZE - 1]);
});

test(
  'the run timeout holds for a batch: what has no answer by then gets 504, and the worker lives on',
  OPTIONS,
  async (t) => {
    const server = await started(t, { runTimeout: 3000 });
    const [{ pid }] = modelOf(server).workers as [{ pid: number }];
    const answers = await batchOf(server, [{ sleep: 30 }, { sleep: 30 }, {}]);
    assert.deepEqual(await statusesOf(answers), [504, 504, 200]);
    assert.deepEqual(await statusesOf(await batchOf(server, [{}, {}, {}])), [200, 200, 200]);
    assert.equal(modelOf(server).workers[0]?.pid, pid);
  },
);
