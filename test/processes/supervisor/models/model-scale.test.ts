/** Tests of scaling while calls run: no call is lost or runs twice. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { ServeError } from '../../../../protocol/errors.js';
import type { Gpu } from '../../../../supervisor/machine/nvidia-smi.js';
import { makeCues, type Cues } from '../../../helpers/cues.js';
import { fixture, isAlive } from '../../../helpers/server.js';
import {
  LIMITS,
  realModel,
  type RealModel,
  type RealModelOptions,
} from '../../../supervisor/models/real-model.js';
import { exactly } from '../../../../supervisor/models/bounds.js';

const LIMIT = { timeout: 240_000 };

async function newModel(
  t: TestContext,
  given: RealModelOptions = {},
): Promise<{ real: RealModel; cues: Cues }> {
  const cues = makeCues(t);
  process.env['CUES'] = cues.folder; // its workers have the environment of this process
  return { real: await realModel(t, fixture('works.mjs'), given), cues };
}

function isNotReady(error: unknown): boolean {
  return error instanceof ServeError && error.code === 'SERVE_NOT_READY' && error.retryAfterS === 30;
}

test(
  'a model that was given no slots refuses calls with that reason, and is not latched',
  LIMIT,
  async (t) => {
    const { real } = await newModel(t);
    await assert.rejects(
      real.call({}),
      (error) => isNotReady(error) && /This model has no workers/.test(String(error)),
    );
    await assert.rejects(real.model.whenLoaded(new Promise(() => {}), Infinity), isNotReady);
    assert.deepEqual([real.model.health.state, real.stops], ['unloaded', []]);
  },
);

test('workers are added while a call runs; each has an index of its own', LIMIT, async (t) => {
  const { real, cues } = await newModel(t);
  assert.deepEqual(await real.model.scale(exactly(1), LIMITS), {
    result: 'done',
    wanted: 1,
    ready: 1,
    error: null,
  });
  const running = real.call({ until: 'finish' });
  await cues.untilNoted('begun call 1');
  const [first] = real.pids;
  assert.deepEqual(await real.model.scale(exactly(3), LIMITS), {
    result: 'done',
    wanted: 3,
    ready: 3,
    error: null,
  });
  assert.deepEqual(
    real.model.crew.all.map(({ index }) => index),
    [0, 1, 2],
  );
  assert.equal(new Set(real.pids).size, 3);
  assert.equal(real.pids[0], first);
  await real.call({});
  cues.give('finish');
  await running;
});

test(
  'a worker of a retired slot finishes its call, gets no other, and frees its device and its index',
  LIMIT,
  async (t) => {
    const { real, cues } = await newModel(t);
    await real.model.scale(exactly(2), LIMITS);
    const running = [real.call({ until: 'finish', n: 1 }), real.call({ until: 'finish', n: 2 })];
    await cues.untilNoted('begun call 2');
    await cues.untilNoted('begun call 1');
    const scaled = real.model.scale(exactly(1), LIMITS);
    assert.deepEqual(
      real.model.crew.all.map(({ state }) => state.name),
      ['live', 'closing'],
    );
    const held = Array.from({ length: 5 }, (_, n) => real.call({ n }));
    cues.give('finish');
    await Promise.all([...running, ...held]);
    assert.deepEqual(await scaled, { result: 'done', wanted: 1, ready: 1, error: null });
    assert.deepEqual(
      real.model.crew.all.map(({ index }) => index),
      [0],
    );
    assert.equal(real.devices.slots, 1);
    const begun = cues.notes().filter((note) => note.startsWith('begun'));
    assert.deepEqual([begun.length, new Set(begun).size], [7, 7], 'each call ran once');
    assert.ok(cues.notes().includes('shut down'), 'it was asked, not killed');
    await real.model.scale(exactly(2), LIMITS);
    assert.deepEqual(
      real.model.crew.all.map(({ index }) => index),
      [0, 1],
      'the index is free again',
    );
  },
);

test(
  'the drain timeout limits a worker of a retired slot: its call is cut, calls behind it run elsewhere',
  LIMIT,
  async (t) => {
    const { real, cues } = await newModel(t);
    await real.model.scale(exactly(2), LIMITS);
    const running = [real.call({ until: 'finish' }), real.call({ until: 'finish' })];
    await cues.untilNoted('begun call 1');
    await cues.untilNoted('begun call 2');
    const held = real.call({});
    const scaled = real.model.scale(exactly(1), { ...LIMITS, finishMs: 50 });
    const cut = await Promise.any(
      running.map((call) =>
        call.then(
          () => Promise.reject(new Error('ended')),
          (error: ServeError) => error,
        ),
      ),
    );
    assert.equal(cut.code, 'SERVE_INFERENCE_FAILED');
    assert.ok(cues.notes().some((note) => note.startsWith('aborted')));
    assert.deepEqual(await scaled, { result: 'done', wanted: 1, ready: 1, error: null });
    cues.give('finish');
    await held;
    assert.equal(
      (await Promise.allSettled(running)).filter(({ status }) => status === 'fulfilled').length,
      1,
    );
  },
);

test(
  'scale to 0 refuses new calls at once, answers accepted ones, then stops the workers',
  LIMIT,
  async (t) => {
    const { real, cues } = await newModel(t);
    await real.model.scale(exactly(1), LIMITS);
    const { pids } = real;
    const taken = [real.call({ until: 'finish' }), real.call({ n: 2 }), real.call({ n: 3 })];
    await cues.untilNoted('begun call 1');
    const scaled = real.model.scale(exactly(0), LIMITS);
    await assert.rejects(real.call({}), isNotReady);
    cues.give('finish');
    await Promise.all(taken);
    assert.deepEqual(await scaled, { result: 'done', wanted: 0, ready: 0, error: null });
    assert.deepEqual([real.model.crew.all.length, real.devices.slots, pids.some(isAlive)], [0, 0, false]);
    await real.model.scale(exactly(1), LIMITS);
    await real.call({});
  },
);

test('scale to 0 without enough time refuses waiting calls and cuts running ones', LIMIT, async (t) => {
  const { real, cues } = await newModel(t);
  await real.model.scale(exactly(1), LIMITS);
  const running = real.call({ ms: 60_000 });
  const waiting = real.call({});
  await cues.untilNoted('begun call 1');
  const scaled = real.model.scale(exactly(0), { finishMs: 50, graceMs: 50 });
  await assert.rejects(running, { code: 'SERVE_WORKER_LOST' });
  await assert.rejects(waiting, isNotReady);
  await scaled;
});

test('if workers are wanted again while the last calls end, the workers stay', LIMIT, async (t) => {
  const { real, cues } = await newModel(t);
  await real.model.scale(exactly(1), LIMITS);
  const { pids } = real;
  const running = real.call({ until: 'finish' });
  await cues.untilNoted('begun call 1');
  const none = real.model.scale(exactly(0), LIMITS);
  const two = real.model.scale(exactly(2), LIMITS);
  cues.give('finish');
  await running;
  assert.deepEqual(await two, { result: 'done', wanted: 2, ready: 2, error: null });
  assert.deepEqual(
    await none,
    { result: 'done', wanted: 2, ready: 2, error: null },
    'the newest wish is the one that settles',
  );
  assert.equal(real.pids[0], pids[0]);
});

test('the last of several scales to 0 sets the time for running calls', LIMIT, async (t) => {
  const { real, cues } = await newModel(t);
  await real.model.scale(exactly(1), LIMITS);
  const running = real.call({ until: 'finish' });
  await cues.untilNoted('begun call 1');
  const short = { finishMs: 100, graceMs: 0 };
  void real.model.scale(exactly(0), short);
  void real.model.scale(exactly(1), LIMITS);
  const none = real.model.scale(exactly(0), LIMITS);
  await new Promise((resolve) => setTimeout(resolve, 3 * short.finishMs)); // the first wish would have cut the call by then
  cues.give('finish');
  await running;
  assert.deepEqual(await none, { result: 'done', wanted: 0, ready: 0, error: null });
});

test('a latched slot does not make scale to 0 fail', LIMIT, async (t) => {
  const cues = makeCues(t);
  process.env['CUES'] = cues.folder;
  const real = await realModel(t, fixture('syntax-error.mjs'));
  await real.model.scale(exactly(1), LIMITS);
  const none = real.model.scale(exactly(0), LIMITS);
  assert.equal(await real.model.health.whenOneFails(none), null);
});

test(
  'a scale whose workers all die settles with the reason; the same scale again tries again',
  LIMIT,
  async (t) => {
    const cues = makeCues(t);
    process.env['CUES'] = cues.folder;
    const real = await realModel(t, fixture('syntax-error.mjs'));
    const { ready, error } = await real.model.scale(exactly(2), LIMITS);
    assert.deepEqual([ready, error?.code, real.stops.length], [0, 'SERVE_APP_INVALID', 1]);
    await assert.rejects(real.call({}), isNotReady);
    assert.equal((await real.model.scale(exactly(2), LIMITS)).ready, 0);
    assert.equal(real.stops.length, 2, 'started, and given up, once more');
    assert.deepEqual(await real.model.scale(exactly(0), LIMITS), {
      result: 'done',
      wanted: 0,
      ready: 0,
      error: null,
    });
  },
);

test('under repeated scaling each call is answered once, and no worker is left over', LIMIT, async (t) => {
  const { real, cues } = await newModel(t);
  await real.model.scale(exactly(1), LIMITS);
  let isOver = false;
  let calls = 0;
  const caller = async (): Promise<void> => {
    for (; !isOver; calls += 1) await real.call({});
  };
  const callers = Promise.all(Array.from({ length: 4 }, caller));
  const seen = new Set<number>();
  for (let i = 0; i < 12; i += 1) {
    const count = [2, 3, 1][i % 3] as number;
    const settled = await real.model.scale(exactly(count), LIMITS);
    assert.deepEqual(settled, { result: 'done', wanted: count, ready: count, error: null });
    for (const pid of real.pids) seen.add(pid);
  }
  isOver = true;
  await callers;
  const begun = cues.notes().filter((note) => note.startsWith('begun'));
  assert.deepEqual([begun.length, new Set(begun).size], [calls, calls]);
  assert.deepEqual([...seen].filter(isAlive), real.pids);
});

const CARDS: Gpu[] = [0, 1].map((index) => ({
  index,
  uuid: `GPU-${index}`,
  name: 'A100',
  card: `GPU-${index}`,
}));

test(
  'slots are spread over the GPUs together with those of other models; threads are shared among all',
  LIMIT,
  async (t) => {
    const { real } = await newModel(t, { gpus: CARDS });
    await real.model.scale(exactly(1), LIMITS);
    const other = await realModel(t, fixture('works.mjs'), { devices: real.devices });
    await other.model.scale(exactly(3), LIMITS);
    const devices = ({ model }: RealModel): string[] => model.crew.all.map(({ device }) => device);
    assert.deepEqual([devices(real), devices(other)], [['gpu 0'], ['gpu 1', 'gpu 0', 'gpu 1']]);
    assert.equal(real.devices.threads, 1);
    await other.model.scale(exactly(0), LIMITS);
    assert.equal(real.devices.threads, 4);
    await real.model.scale(exactly(2), LIMITS);
    assert.deepEqual(devices(real), ['gpu 0', 'gpu 1']);
  },
);

test('a scale without enough devices is refused, and nothing changes', LIMIT, async (t) => {
  const { real } = await newModel(t, { options: { gpus: '0' } });
  await assert.rejects(real.model.scale(exactly(1), LIMITS), { code: 'SERVE_CONFIG' });
  assert.deepEqual([real.model.crew.wanted, real.model.crew.all.length], [0, 0]);
});

test(
  'with no workers wanted, accepted calls do not wait for others to join their batch; later calls do again',
  LIMIT,
  async (t) => {
    const cues = makeCues(t);
    process.env['CUES'] = cues.folder;
    const options = { batchSize: 3, maxBatchDelay: 600_000, queueTimeout: 1_200_000 };
    const real = await realModel(t, fixture('batches.mjs'), { options });
    const { model } = real;
    await model.scale(exactly(1), LIMITS);
    const taken = [real.call({ name: 'a' }), real.call({ name: 'b' })];
    assert.equal(model.dispatcher.queued, 2, 'their batch is not full');
    await model.scale(exactly(0), LIMITS);
    await Promise.all(taken);
    assert.deepEqual(cues.notes(), ['run a b']);
    await model.scale(exactly(1), LIMITS);
    const waiting = [real.call({ name: 'c' }), real.call({ name: 'd' })];
    assert.equal(model.dispatcher.queued, 2);
    await Promise.all([...waiting, real.call({ name: 'e' })]);
    assert.deepEqual(cues.notes(), ['run a b', 'run c d e']);
  },
);

test(
  'whenOneFails resolves at once with the error of a latched slot, while other workers still start',
  LIMIT,
  async (t) => {
    const real = await realModel(t, fixture('throws-in-one-slot.mjs'), { options: { restartLimit: 0 } });
    const settled = real.model.scale(exactly(2), LIMITS);
    const error = await real.model.health.whenOneFails(settled);
    assert.match(String(error?.detail), /this slot is broken$/);
    assert.equal(real.model.crew.wanted, 2); // the slot starts again once the other worker is ready
    assert.equal((await settled).ready, 1);
    await real.model.scale(exactly(1), LIMITS);
    assert.deepEqual([real.model.crew.wanted, real.model.crew.running], [1, 1]);
    assert.equal(await real.model.health.whenOneFails(Promise.resolve()), null, 'none that is left has');
  },
);

test('rejectCalls fails calls that wait or were sent ahead, and lets running calls end', LIMIT, async (t) => {
  const { real, cues } = await newModel(t);
  await real.model.scale(exactly(1), LIMITS);
  const running = real.call({ until: 'finish' });
  await cues.untilNoted('begun call 1');
  const waiting = Promise.allSettled(Array.from({ length: 50 }, () => real.call({})));
  const arriving = real.model.dispatcher.admit(0);
  const evicted: ServeError[] = [];
  arriving.begin((error) => evicted.push(error));
  const error = new ServeError('SERVE_NOT_READY', 'It goes.');
  real.model.rejectCalls(error);
  const reasons = (await waiting).map((result) => (result as PromiseRejectedResult).reason as unknown);
  assert.deepEqual([...new Set([...reasons, ...evicted])], [error]);
  await assert.rejects(real.call({}), error);
  await assert.rejects(real.model.whenLoaded(new Promise(() => {}), Infinity), error);
  cues.give('finish');
  await running;
  assert.deepEqual(await real.model.scale(exactly(0), LIMITS), {
    result: 'done',
    wanted: 0,
    ready: 0,
    error: null,
  });
  assert.deepEqual(
    cues.notes().filter((note) => note.startsWith('begun')),
    ['begun call 1'],
  );
});
