/** Calls that outlive their clients are put on record before they are run, and before their clients get an answer. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Place, type Arrivals } from '../../../../supervisor/dispatch/arrivals.js';
import type { Call } from '../../../../supervisor/dispatch/call.js';
import { MemoryStore } from '../../../../supervisor/jobs/memory-store.js';
import type { Acceptance, NewJob } from '../../../../supervisor/jobs/job-record.js';
import { eventually } from '../../../helpers/server.js';
import {
  MEMORY,
  countedJobs,
  fakeModel,
  freeArrivals,
  onlyModel,
  pullJobs,
  serveHandler,
} from '../serve-handler.js';

const LIMIT = { timeout: 60_000 };

/** Holds every job until the test decides its end. */
class HeldStore extends MemoryStore {
  readonly held: { put(): void; refuse(error: Error): void }[] = [];

  override async accept(job: NewJob): Promise<Acceptance> {
    await new Promise<void>((put, refuse) => this.held.push({ put, refuse }));
    return super.accept(job);
  }
}

interface Bench {
  readonly url: string;
  readonly store: HeldStore;
  /** Pulled from the store. */
  readonly calls: Call[];
  /** Has the places in the queue that are taken. */
  readonly arrivals: Arrivals;
  /** Refusals that were counted. */
  readonly outcomes: string[];
}

async function openBench(t: TestContext): Promise<Bench> {
  const store = new HeldStore(MEMORY);
  const arrivals = freeArrivals();
  const bench = { url: '', store, calls: [] as Call[], arrivals, outcomes: [] as string[] };
  const model = fakeModel('model', { kind: 'background', admit: () => new Place(arrivals) });
  const jobs = countedJobs(store);
  pullJobs(jobs, 'model', (call) => bench.calls.push(call));
  bench.url = await serveHandler(t, {
    models: onlyModel(model),
    jobs,
    observer: { refused: (_request, error) => void bench.outcomes.push(error.code) },
  });
  return bench;
}

const untilHeld = ({ store }: Bench): Promise<void> =>
  eventually(
    () => store.held.length === 1,
    60_000,
    () => `${store.held.length} are held`,
  );

/** The client's answer to a call that is accepted, and to one that is refused. */
const WAYS = [
  {
    who: "a background route's caller",
    path: '/',
    taken: /"started":true/,
    refused: [503, '5', /"code":"SERVE_NOT_KEPT"/],
  },
  {
    who: "the gateway's caller",
    path: '/start/v4/',
    taken: /"callID":"call_1"/,
    refused: [200, null, /"message":"inference server error: The call could not be recorded/],
  },
] as const;

for (const { who, path, taken, refused } of WAYS) {
  const post = ({ url }: Bench, signal?: AbortSignal): Promise<Response> =>
    fetch(url + path, {
      method: 'POST',
      body: '{"startOnly":true}',
      headers: { 'content-type': 'application/json' },
      ...(signal === undefined ? {} : { signal }),
    });

  test(
    `${who} gets its answer, and the call is run, once it is on record; it keeps its place until then`,
    LIMIT,
    async (t) => {
      const bench = await openBench(t);
      const answer = post(bench);
      await untilHeld(bench);
      assert.deepEqual([bench.calls.length, bench.arrivals.places.length, bench.calls.length], [0, 1, 0]);
      const isFirst = await Promise.race([
        answer.then(() => 'told'),
        new Promise((resolve) => setImmediate(resolve, 'held')),
      ]);
      assert.equal(isFirst, 'held');
      bench.store.held[0]?.put();
      assert.match(await (await answer).text(), taken);
      assert.deepEqual([bench.calls.length, bench.arrivals.places.length, bench.outcomes], [1, 0, []]);
    },
  );

  test(`${who} gets an error if the call cannot be put on record, and it is not run`, LIMIT, async (t) => {
    const bench = await openBench(t);
    const answer = post(bench);
    await untilHeld(bench);
    bench.store.held[0]?.refuse(new Error('no space left'));
    const response = await answer;
    const [status, retryAfter, text] = refused;
    assert.deepEqual([response.status, response.headers.get('retry-after')], [status, retryAfter]);
    assert.match(await response.text(), text);
    assert.deepEqual(
      [bench.calls.length, bench.arrivals.places.length, bench.outcomes],
      [0, 0, ['SERVE_NOT_KEPT']],
    );
  });

  test(`${who} may leave while the call is put on record: it is run`, LIMIT, async (t) => {
    const bench = await openBench(t);
    const leaving = new AbortController();
    const answer = post(bench, leaving.signal);
    await untilHeld(bench);
    leaving.abort();
    await assert.rejects(answer, { name: 'AbortError' });
    bench.store.held[0]?.put();
    await eventually(
      () => bench.calls.length === 1,
      60_000,
      () => 'the job is not run',
    );
  });
}
