/** The way to a table that hangs, with a mocked clock, and to one whose thread dies. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { NO_LISTENER } from '../../../../supervisor/jobs/job-store.js';
import { CannotOpen, explained } from '../../../../supervisor/jobs/local/job-database.js';
import { LocalStore } from '../../../../supervisor/jobs/local/local-store.js';
import { ANSWER_LIMIT_MS } from '../../../../supervisor/jobs/local/body-files.js';
import {
  threadIn,
  Uncertain,
  type OpenPort,
  type TablePort,
} from '../../../../supervisor/jobs/local/table-link.js';
import { LIMITS as FEW, StoreBench } from '../conformance.js';
import { newStoredJob } from '../stored-jobs.js';
import { copyOf, inThisThread, openHere, scratch } from './tables.js';

const LIMITS = { ...FEW, maxBytes: 10_000_000 };

const LIMIT = { timeout: 60_000 };

/** A store whose table gets no call while it hangs. */
class Hanging {
  readonly folder = scratch();
  #isHung = false;
  #held: (() => void)[] = [];

  async open(): Promise<StoreBench> {
    return new StoreBench(await LocalStore.open(this.folder, LIMITS, this.#openPort));
  }

  hang(): void {
    this.#isHung = true;
  }

  goOn(): void {
    this.#isHung = false;
    for (const post of this.#held) post();
    this.#held = [];
  }

  readonly #openPort: OpenPort = async (...given): Promise<TablePort> => {
    const port = await inThisThread(this.folder, LIMITS)(...given);
    return {
      ...port,
      post: (calls) => {
        if (this.#isHung) this.#held.push(() => port.post(calls));
        else port.post(calls);
      },
    };
  };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('calls of a table that hangs reject, so do later ones at once, until it answers', LIMIT, async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 });
  const table = new Hanging();
  const bench = await table.open();
  const [first, second] = [await bench.accept(), await bench.accept()];
  await bench.begin('first');
  table.hang();
  const hung = [bench.begin('second'), bench.answer(first, 'first'), bench.store.get(first)];
  const settled = Promise.allSettled(hung);
  await turn(); // all are on their way
  for (let i = 0; i < 2; i += 1) t.mock.timers.tick(ANSWER_LIMIT_MS + 1); // first that of a call which was answered
  for (const one of await settled)
    assert.ok(one.status === 'rejected' && one.reason instanceof Uncertain, one.status);
  await assert.rejects(bench.store.get(first), /has not answered for 8 s/);
  table.goOn();
  await turn();
  assert.equal(await bench.state(second), 'queued', 'the begin whose answer came too late was taken back');
  assert.deepEqual([await bench.state(first), bench.waiting()], ['succeeded', 1]);
  assert.equal((await bench.answer(first, 'first'))?.state, 'succeeded', 'the same outcome, again');
  assert.equal(await bench.answer(first, 'first'), null, 'that was told');
  assert.deepEqual(await bench.begin('third'), [second]);
  await bench.store.close();
});

test('a thread that dies while it hangs is opened again, though the first try fails', LIMIT, async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const folder = scratch();
  let tries = 0;
  let die = (): void => {};
  const bench = new StoreBench(
    await LocalStore.open(folder, LIMITS, async (isFirst, onNews, onDied) => {
      tries += 1;
      if (tries === 2) throw new Error('not now');
      const port = await inThisThread(tries === 1 ? folder : copyOf(folder), LIMITS)(isFirst, onNews, onDied);
      if (tries > 1) return port;
      const isHung = (): boolean => bench.waiting() === 1;
      die = () => onDied('it was killed');
      return { ...port, post: (calls) => void (isHung() || port.post(calls)) };
    }),
  );
  const id = await bench.accept();
  const begin = assert.rejects(bench.begin('hung'), Uncertain);
  await turn();
  for (let i = 0; i < 2; i += 1) t.mock.timers.tick(ANSWER_LIMIT_MS + 1); // first that of a call which was answered
  await begin;
  die();
  for (let i = 0; i < 2; i += 1) {
    await turn();
    t.mock.timers.tick(1000);
  }
  await turn();
  assert.deepEqual([tries, await bench.state(id)], [3, 'queued']);
  await bench.store.close();
});

test('the outcome of a job and the begin of the next one, in one turn, share a commit', LIMIT, async () => {
  const folder = scratch();
  const commits: string[][] = [];
  const bench = new StoreBench(
    await LocalStore.open(folder, LIMITS, async (...given) => {
      const port = await inThisThread(folder, LIMITS)(...given);
      return {
        ...port,
        post: (calls) => {
          commits.push(calls.map(({ name }) => name));
          port.post(calls);
        },
      };
    }),
  );
  const [first, second] = [await bench.accept(), await bench.accept()];
  await bench.begin('first');
  commits.length = 0;
  const [ended, begun] = await Promise.all([bench.answer(first, 'first'), bench.begin('second')]);
  assert.deepEqual([ended?.state, begun, commits], ['succeeded', [second], [['settle', 'begin']]]);
  await bench.store.close();
});

test(
  'a disk that is full at the start: the store fails, and opens once there is room, as a first start',
  LIMIT,
  async (t) => {
    assert.ok(explained({ errcode: 13, message: 'full' }, '/any').isFull);
    const first = scratch();
    const before = new StoreBench(await openHere(first, LIMITS));
    const [ran, waits] = [await before.accept({ maxAttempts: 1 }), await before.accept()];
    await before.begin('mark');
    const folder = copyOf(first); // as a kill leaves it
    await before.store.close();
    t.mock.timers.enable({ apis: ['setTimeout'] });
    let isFull = true;
    const store = await LocalStore.open(folder, LIMITS, (...given) =>
      isFull
        ? Promise.reject(Object.assign(new CannotOpen('the disk is full'), { isFull: true }))
        : inThisThread(folder, LIMITS)(...given),
    );
    const failures: string[] = [];
    const ended: string[] = [];
    store.listener = {
      ...NO_LISTENER,
      onFailed: (why) => failures.push(why),
      onEndedUnrun: ({ id }) => ended.push(id),
    };
    await turn();
    await assert.rejects(store.get(waits), /the disk is full/);
    for (const stillFull of [true, false]) {
      isFull = stillFull;
      t.mock.timers.tick(1000);
      await turn();
    }
    assert.deepEqual([failures, ended, store.hasDue('m')], [['the disk is full'], [ran], true]);
    assert.equal((await store.get(waits))?.state, 'queued');
    await store.close();
  },
);

/** A store in a real thread. */
async function openThread(t: TestContext): Promise<{ bench: StoreBench; thread: () => Worker }> {
  const threads: Worker[] = [];
  const folder = scratch();
  const store = await LocalStore.open(
    folder,
    LIMITS,
    threadIn(folder, LIMITS, (thread) => threads.push(thread)),
  );
  t.after(() => store.close());
  return { bench: new StoreBench(store), thread: () => threads.at(-1) as Worker };
}

async function eventually(test: () => Promise<boolean>): Promise<void> {
  while (!(await test().catch(() => false))) await new Promise((resolve) => setTimeout(resolve, 10));
}

test('jobs pass through a thread, many in one commit, in order', LIMIT, async (t) => {
  const { bench } = await openThread(t);
  const ids = Array.from({ length: 200 }, (_, i) => `job ${i}`);
  await Promise.all(ids.map((id) => bench.accept({ id, createdAt: Date.now() })));
  assert.equal(bench.waiting(), 200);
  const began: string[] = [];
  for (let i = 0; i < 4; i += 1) began.push(...(await bench.begin(`${i}`, { routes: new Map([['/', 50]]) })));
  assert.deepEqual(began, ids);
  await Promise.all(ids.map((id, i) => bench.answer(id, `${Math.floor(i / 50)}`)));
  assert.equal((await bench.store.readResult(ids[199] as string))?.toString(), '1');
  assert.equal(bench.changed.filter(({ state }) => state === 'succeeded').length, 200);
});

test(
  'a thread that dies is opened again: its calls reject, and what runs here still runs',
  LIMIT,
  async (t) => {
    const { bench, thread } = await openThread(t);
    const [runs, waits] = [await bench.accept({ priority: 1 }), await bench.accept()];
    await bench.begin('first');
    const ended = thread().terminate();
    const begin = bench.begin('second').then(
      (ids) => ids,
      () => null,
    );
    await ended;
    const began = await begin;
    assert.ok(began === null || began[0] === waits);
    await assert.rejects(bench.store.get(runs), /thread of the store of jobs has ended/);
    await eventually(async () => (await bench.state(runs)) === 'running');
    if (began === null)
      await eventually(async () => (await bench.state(waits)) === 'queued' && bench.waiting() === 1);
    assert.equal((await bench.answer(runs, 'first'))?.state, 'succeeded');
    assert.equal(bench.endedUnrun.length, 0);
  },
);

test('one server at a time has a folder, until it closes it', LIMIT, async (t) => {
  const folder = scratch();
  const first = await LocalStore.open(folder, LIMITS);
  await assert.rejects(LocalStore.open(folder, LIMITS), {
    name: 'CannotOpen',
    message: `another server uses the store of jobs in ${folder}. End it, or give this one another folder with --jobs local:<folder>.`,
  });
  await first.accept(newStoredJob({ createdAt: Date.now() }));
  await first.close();
  const second = await LocalStore.open(folder, LIMITS);
  t.after(() => second.close());
  assert.equal((await second.get('job'))?.state, 'queued');
});
