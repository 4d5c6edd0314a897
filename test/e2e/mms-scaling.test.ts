/** Workers of models that are managed over HTTP: they come, go, die and are counted, and no call is forgotten. */
import assert from 'node:assert/strict';
import { basename } from 'node:path';
import { describe, test } from 'node:test';
import { cuesFor, fixtureStore, startManaged } from '../helpers/managed-server.js';
import { holdings } from '../helpers/model-storm.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { eventually, isAlive } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

const NO_WORKER = '503 ServiceUnavailableException';

withOneRuntime((runtime) => {
  const { store, url } = fixtureStore(runtime);

  describe('scale', LIMIT, () => {
    test('another batch size replaces the workers one by one, since a service may rely on it', async (t) => {
      const server = await startManaged(t, store);
      const handler = `handler=${basename(runtime.app('mms-batch-size'))}:tell&batch_size=2`;
      await server.manage(`POST /models?${url('mms-batch-size')}&model_name=m&initial_workers=1&${handler}`);
      const told = async (): Promise<{ batchSize: number; pid: number }> => (await server.infer('m')).json();
      const before = await told();
      assert.equal(before.batchSize, 2);
      assert.equal(await server.said('PUT /models/m?batch_size=4&synchronous=true'), '200 Workers scaled');
      const after = await told();
      assert.equal(after.batchSize, 4);
      assert.deepEqual([await server.pids('m'), isAlive(before.pid)], [[after.pid], false]);
    });
  });

  test(
    'while workers with a larger batch size start, none gets more items than its own batch size',
    LIMIT,
    async (t) => {
      const cues = cuesFor(t);
      const server = await startManaged(t, store);
      const batches = 'batch_size=2&max_batch_delay=0';
      assert.equal(
        await server.said(
          `POST /models?${url('mms-notes-batches')}&model_name=m&initial_workers=2&${batches}`,
        ),
        '200 Workers scaled',
      );
      const before = await server.pids('m');
      cues.give('roll');
      const changed = server.said('PUT /models/m?batch_size=8&synchronous=true');
      const isHalfway = async (): Promise<boolean> => {
        const { workers } = await server.describe('m');
        const isReady = (isOld: boolean): boolean =>
          workers.some(({ pid, status }) => status === 'READY' && before.includes(pid ?? 0) === isOld);
        return workers.length >= 3 && isReady(true) && isReady(false);
      };
      await eventually(isHalfway, 60_000, () => 'no worker has been replaced');
      const calls = Array.from({ length: 40 }, () => server.infer('m'));
      await cues.untilNoted(/^told 2/);
      await cues.untilNoted(/^told 8/);
      cues.give('finish');
      for (const { status } of await Promise.all(calls)) assert.equal(status, 200);
      for (const note of cues.notes()) {
        const [told = 0, got = 0] = (note.match(/\d+/g) ?? []).map(Number);
        assert.ok(got <= told, note);
      }
      cues.give('the second may come');
      assert.equal(await changed, '200 Workers scaled');
    },
  );

  test('a worker that is restarted finishes its call while the next one serves', LIMIT, async (t) => {
    const cues = cuesFor(t);
    const server = await startManaged(t, store);
    await server.manage(`POST /models?${url('works')}&initial_workers=1`);
    const [before = 0] = await server.pids('works');
    const running = server.infer('works', { until: 'go on' });
    await cues.untilNoted(/^begun/);
    const restart = 'PUT /models/works/1/workers/0/restart';
    assert.equal(await server.said(restart), '202 Processing worker updates...');
    // This call waits for the next worker: the one before is busy, and begins no other.
    const served = (await server.infer('works')).json<{ pid: number }>();
    assert.notEqual(served.pid, before);
    cues.give('go on');
    assert.equal((await running).json<{ pid: number }>().pid, before);
    await eventually(
      () => !isAlive(before),
      60_000,
      () => 'the worker has not ended',
    );
    assert.deepEqual(await server.pids('works'), [served.pid]);
    assert.equal(
      await server.said('PUT /models/works/1/workers/7/restart'),
      '404 The model has no worker 7.',
    );
  });

  describe('scale', LIMIT, () => {
    test('a worker that ends its calls gets a shorter time, set by PUT or by DELETE', async (t) => {
      const cues = cuesFor(t);
      const server = await startManaged(t, { ...store, unregisterTimeout: 1000 });
      await server.manage(`POST /models?${url('works')}&initial_workers=3`);
      const calls = Array.from({ length: 3 }, async () => {
        return (await server.infer('works', { until: 'never' })).status;
      });
      const haveBegun = (): boolean => cues.notes().filter((note) => note.startsWith('begun')).length === 3;
      await eventually(haveBegun, 60_000, () => 'the calls have not begun');
      const scaleTo = (count: number, more = ''): Promise<string> =>
        server.said(`PUT /models/works?min_worker=${count}&synchronous=true${more}`);
      const isBoundTo = async (count: number): Promise<void> => {
        const isTaken = async (): Promise<boolean> => (await server.describe('works')).maxWorkers === count;
        await eventually(isTaken, 60_000, () => 'it is not taken');
      };

      const waiting = scaleTo(2);
      await isBoundTo(2);
      const cut = scaleTo(2, '&timeout=0');
      assert.notEqual(await Promise.race(calls), 200);
      assert.deepEqual(await Promise.all([waiting, cut]), Array(2).fill('200 Workers scaled'));
      const pids = await server.pids('works');
      assert.equal(pids.length, 2, 'the others go on');

      const left = scaleTo(1);
      await isBoundTo(1);
      await server.manage('DELETE /models/works'); // 408 if the machine is slow: it goes on all the same
      for (const status of await Promise.all(calls)) assert.notEqual(status, 200);
      const isGone = (): boolean => !pids.some(isAlive) && server.handle.models.describe().length === 0;
      await eventually(isGone, 60_000, () => 'it is still there');
      assert.match(await left, /was unregistered before its workers were ready/);
    });

    test('up, down, to nothing and back: the description is the list of processes each time', async (t) => {
      cuesFor(t);
      const server = await startManaged(t, store);
      await server.manage(`POST /models?${url('works')}`);
      const wishes = [
        ['min_worker=3', 3],
        ['min_worker=1', 1],
        ['min_worker=0&max_worker=0', 0],
        ['min_worker=0&max_worker=2', 0],
        ['', 1],
        ['min_worker=1&max_worker=4', 1],
        ['min_worker=2&max_worker=4&number_gpu=7', 2],
        ['min_worker=0&max_worker=1', 1],
      ] as const;
      const before = new Set(holdings().processes);
      for (const [wish, count] of wishes) {
        assert.equal(
          await server.said(`PUT /models/works?${wish}&synchronous=true`),
          '200 Workers scaled',
          wish,
        );
        const { workers } = await server.describe('works');
        assert.deepEqual(
          workers.map(({ status }) => status),
          Array<string>(count).fill('READY'),
          wish,
        );
        const pids = workers.flatMap(({ pid }) => pid ?? []);
        const workersNow = holdings().processes.filter((pid) => !before.has(pid) && isAlive(pid));
        assert.deepEqual(
          pids.sort((a, b) => a - b),
          workersNow,
          wish,
        );
        assert.equal((await server.infer('works')).status, count === 0 ? 503 : 200, wish);
      }
    });
  });

  describe('unregister', LIMIT, () => {
    test('with 50 calls that wait: those are refused at once, what has begun is answered, then it is gone', async (t) => {
      const cues = cuesFor(t);
      const server = await startManaged(t, store);
      await server.manage(`POST /models?${url('works')}&initial_workers=1`);
      const pids = await server.pids('works');
      const running = server.infer('works', { until: 'finish' });
      await cues.untilNoted(/^begun/);
      const waiting = Array.from({ length: 50 }, () => server.refusal('works'));
      const isQueued = (): boolean => {
        const [model] = server.handle.models.describe();
        return (model?.queue.waiting ?? 0) + (model?.inFlight ?? 0) === 51;
      };
      await eventually(isQueued, 60_000, () => 'the calls have not arrived');
      const gone = server.said('DELETE /models/works');
      assert.deepEqual(new Set(await Promise.all(waiting)), new Set([NO_WORKER]));
      assert.equal(await server.refusal('works'), NO_WORKER, 'a new one, too');
      const { message } = (await server.infer('works')).json<{ message: string }>();
      assert.match(message, /^No worker is available to serve request for model: works\. The model works/);
      const { status, workers } = await server.describe('works');
      assert.deepEqual([status, workers.map((worker) => worker.status)], ['UNLOADING', ['UNLOADING']]);
      const again = server.said('DELETE /models/works');
      cues.give('finish');
      assert.equal((await running).status, 200);
      assert.deepEqual(await Promise.all([gone, again]), Array(2).fill('200 Model "works" unregistered'));
      assert.deepEqual(pids.filter(isAlive), []);
      assert.equal(await server.said('DELETE /models/works'), '404 Model not found: works');
      assert.equal(await server.refusal('works'), '404 ModelNotFoundException');
      const begun = cues.notes().filter((note) => note.startsWith('begun'));
      assert.equal(begun.length, 1, 'nothing that was refused ran');
    });

    test('waits for the exit of workers, too: one that needs its time is gone when the answer comes', async (t) => {
      const cues = cuesFor(t);
      const server = await startManaged(t, store);
      await server.manage(`POST /models?${url('shuts-down-slowly')}&model_name=m&initial_workers=1`);
      const [pid = 0] = await server.pids('m');
      let isAnswered = false;
      const gone = server.said('DELETE /models/m').finally(() => (isAnswered = true));
      await cues.untilNoted('shutting down');
      const { status } = await server.describe('m');
      if (isAlive(pid)) assert.deepEqual([isAnswered, status], [false, 'UNLOADING']); // unless its time was over
      cues.give('end');
      assert.equal(await gone, '200 Model "m" unregistered');
      assert.ok(!isAlive(pid));
    });

    test('that takes longer than it may is 408 and goes on; asked again, it waits again', async (t) => {
      const server = await startManaged(t, { ...store, unregisterTimeout: '500ms' });
      await server.manage(`POST /models?${url('ignores-sigterm')}&model_name=m&initial_workers=1`);
      const [pid = 0] = await server.pids('m');
      process.kill(pid, 'SIGSTOP'); // nothing but SIGKILL ends it now
      const late = server.manage('DELETE /models/m');
      const isUnloading = async (): Promise<boolean> => (await server.describe('m')).status === 'UNLOADING';
      await eventually(isUnloading, 60_000, () => 'it is not unloaded');
      const message = 'Timed out while cleaning resources: m';
      assert.deepEqual((await late).json(), { code: 408, type: 'RequestTimeoutException', message });
      const again: Promise<string>[] = [];
      const isGone = async (): Promise<boolean> => {
        again.push(server.said('DELETE /models/m'));
        return (await server.said('GET /models/m')).startsWith('404');
      };
      await eventually(isGone, 60_000, () => 'it is still there');
      const said = await Promise.all(again);
      assert.ok(said.includes('200 Model "m" unregistered'), [...new Set(said)].join(', '));
      assert.ok(!isAlive(pid));
    });
  });

  test('many clients who manage one model at once leave no process behind', LIMIT, async (t) => {
    const server = await startManaged(t, store);
    const before = holdings().processes;
    const asked = [
      `POST /models?${url('echoes')}&initial_workers=1`,
      'PUT /models/echoes?min_worker=2&synchronous=true',
      'PUT /models/echoes?min_worker=0&max_worker=1',
      'GET /models/echoes',
      'PUT /models/echoes?batch_size=2&response_timeout=5',
      'DELETE /models/echoes',
    ];
    const statuses = new Set<number>();
    const client = async (first: number): Promise<void> => {
      for (let turn = first; turn < first + 8; turn += 1) {
        const reply = await server.manage(asked[turn % asked.length] as string);
        statuses.add(reply.status);
        if (reply.status < 400) continue;
        const { message } = reply.json<{ message: string }>();
        assert.match(
          message,
          /^Model not found: echoes$|^Model echoes is already registered\.$|was unregistered before its workers/,
        );
      }
    };
    await Promise.all(Array.from({ length: 12 }, (_, i) => client(i)));
    assert.ok(statuses.has(200) && statuses.has(202), 'some were served');
    await server.manage('DELETE /models/echoes');
    assert.equal(await server.said('GET /models/echoes'), '404 Model not found: echoes');
    assert.deepEqual(
      holdings().processes.filter((pid) => !before.includes(pid)),
      [],
    );
    await server.handle.close();
  });
});

describe('scale', LIMIT, () => {
  test('asynchronous by default', async (t) => {
    const server = await startManaged(t);
    await server.manage('POST /models?url=echoes.mjs');
    assert.equal(await server.said('PUT /models/echoes?min_worker=2'), '202 Processing worker updates...');
    const isThere = async (): Promise<boolean> => (await server.describe('echoes')).status === 'Healthy';
    await eventually(isThere, 60_000, () => 'the workers have not come');
  });

  test('options are changed while the workers stay; without a number of workers that stays, too', async (t) => {
    const server = await startManaged(t);
    await server.manage('POST /models?url=echoes.mjs&initial_workers=2');
    const pids = await server.pids('echoes');
    const change = 'max_batch_delay=5&response_timeout=9&synchronous=true';
    assert.equal(await server.said(`PUT /models/echoes?${change}`), '200 Workers scaled');
    const facts = (await server.manage('GET /models/echoes')).json<Record<string, unknown>>();
    assert.deepEqual([facts['maxBatchDelay'], facts['responseTimeout']], [5, 9]);
    assert.deepEqual(await server.pids('echoes'), pids);
  });
});

test(
  'a client that waits for workers when the server ends gets an answer with that reason',
  LIMIT,
  async (t) => {
    const cues = cuesFor(t);
    cues.give('init may not end');
    const server = await startManaged(t);
    const waiting = server.said('POST /models?url=works.mjs&initial_workers=1');
    await eventually(
      async () => (await server.manage('GET /models/works')).status === 200,
      60_000,
      () => 'it is not registered',
    );
    const ended = server.handle.close();
    assert.equal(await waiting, '503 The server is shutting down.');
    assert.equal((await ended).reason, 'drained');
  },
);

test(
  'a description counts the calls that wait, those of the last minutes, and those that were refused',
  LIMIT,
  async (t) => {
    const cues = cuesFor(t);
    const server = await startManaged(t, { queueSize: 10 });
    await server.manage('POST /models?url=works.mjs&initial_workers=1');
    interface Counts {
      readonly metrics: {
        readonly rejectedRequests: number;
        readonly waitingQueueSize: number;
        readonly requests: number;
      };
      readonly jobQueueStatus: { readonly remainingCapacity: number; readonly pendingRequests: number };
    }
    const counts = async (): Promise<number[]> => {
      const { metrics, jobQueueStatus } = (await server.manage('GET /models/works')).json<Counts>();
      const { remainingCapacity, pendingRequests } = jobQueueStatus;
      return [
        metrics.waitingQueueSize,
        pendingRequests,
        remainingCapacity,
        metrics.requests,
        metrics.rejectedRequests,
      ];
    };
    const come = async (expected: readonly number[]): Promise<void> => {
      let last: number[] = [];
      const isSo = async (): Promise<boolean> => String((last = await counts())) === String(expected);
      await eventually(isSo, 60_000, () => `${last.join(', ')} and not ${expected.join(', ')}`);
    };
    await come([0, 0, 10, 0, 0]);
    const running = server.infer('works', { until: 'finish' });
    await cues.untilNoted(/^begun/);
    const waiting = server.infer('works', { until: 'finish' });
    await come([1, 1, 9, 0, 0]);
    cues.give('finish');
    for (const { status } of await Promise.all([running, waiting])) assert.equal(status, 200);
    await come([0, 0, 10, 2, 0]);
    await server.manage('PUT /models/works?min_worker=0&synchronous=true');
    assert.equal(await server.refusal('works'), NO_WORKER);
    await come([0, 0, 10, 3, 1]);
  },
);
