/** The last calls and deaths of a server, as viewers get them: numbered, bounded, without anything that they hold on to. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../../../../protocol/errors.js';
import type { CountedRequest } from '../../../../supervisor/http/request/request-context.js';
import type { Model } from '../../../../supervisor/models/model.js';
import type { WorkerDeath } from '../../../../supervisor/processes/worker-death.js';
import {
  CALLS_KEPT,
  LastCalls,
  LastDeaths,
  MAX_DETAIL_CHARS,
  RecentList,
  shownCalls,
  shownDeaths,
} from '../../../../supervisor/status/live/last-entries.js';
import { FakeWorker, newCall } from '../../dispatch/calls.js';

const MODEL = { spec: { name: 'digits', version: '1' } } as Model;

test('a list keeps its last entries, and has those of the last second', () => {
  const list = new RecentList<number>(3);
  for (const second of [[1, 2], [], [3, 4], [5, 6, 7, 8]]) {
    for (const entry of second) list.add(entry);
    list.endSecond();
    assert.deepEqual(list.last, second.slice(-3));
    list.add(0);
    assert.deepEqual(list.last, second.slice(-3), 'of this second nothing is there yet');
    list.endSecond();
  }
  assert.deepEqual(list.past, [7, 8, 0]);
});

/** Everything of a list so far. */
function allOf<Entry>(list: RecentList<Entry>): readonly Entry[] {
  list.endSecond();
  return list.past;
}

function asked(url: string, counts = true): CountedRequest {
  const request = { method: 'POST', url };
  return { model: MODEL, request, requestId: 'r', counts } as unknown as CountedRequest;
}

test('a call has its outcome, its worker and its sizes, and no query', () => {
  const last = new LastCalls();
  const call = newCall('mine');
  call.sendTo(Object.assign(new FakeWorker(), { index: 3 }));
  call.begin(performance.now());
  call.chunk([Buffer.from('abc'), Buffer.from('de')], () => {});
  call.end(12.345);
  last.settled(asked('/'), call, 200, null);
  const [shown] = allOf(last.list);
  assert.deepEqual(
    [
      shown?.id,
      shown?.model,
      shown?.route,
      shown?.status,
      shown?.code,
      shown?.worker,
      shown?.outBytes,
      shown?.runMs,
    ],
    [1, 'digits', '/', 200, 'ok', 3, 5, 12.35],
  );
  assert.equal(shown?.requestId, 'mine');
});

test('a call that never began has no worker; of a client that left there is no status', () => {
  const last = new LastCalls();
  const call = newCall('x');
  call.sendTo(new FakeWorker());
  last.settled(asked('/'), call, 200, new ServeError('SERVE_CANCELLED'));
  const [shown] = allOf(last.list);
  assert.deepEqual([shown?.worker, shown?.status, shown?.code], [null, null, 'SERVE_CANCELLED']);
});

test('a refused call is there, a refused page is not', () => {
  const last = new LastCalls();
  last.refused(asked('/nowhere?key=s3cret'), new ServeError('SERVE_NOT_FOUND'), 404);
  last.refused(asked('/status', false), new ServeError('SERVE_UNAUTHORIZED'), 401);
  assert.deepEqual(
    allOf(last.list).map(({ path, status, code }) => [path, status, code]),
    [['/nowhere', 404, 'SERVE_NOT_FOUND']],
  );
});

test('many calls without a valid key do not push the others out', () => {
  const last = new LastCalls();
  last.refused(asked('/mine'), new ServeError('SERVE_NOT_FOUND'), 404);
  for (let i = 0; i < CALLS_KEPT; i += 1) last.refused(asked('/'), new ServeError('SERVE_UNAUTHORIZED'), 401);
  const kept = allOf(last.list);
  assert.deepEqual([kept[0]?.path, kept[1]?.status], ['/mine', 401]);
});

test('a failed call has its error; without the words only what the server says itself', () => {
  const last = new LastCalls();
  const threw = new ServeError('SERVE_INFERENCE_FAILED', 'secret', {
    detail: 'TypeError: secret\n    at app.ts',
  });
  last.settled(asked('/'), newCall('a'), 500, threw);
  last.refused(asked('/'), new ServeError('SERVE_QUEUE_FULL'), 503);
  last.settled(asked('/'), newCall('b'), 200, null);
  const all = allOf(last.list);
  const errors = (showsWords: boolean): unknown[] => shownCalls(all, showsWords).map(({ error }) => error);
  const full = { message: 'The queue is full; try again later.', detail: '' };
  assert.deepEqual(errors(true), [{ message: 'secret', detail: threw.detail }, full, null]);
  assert.deepEqual(errors(false), [{ message: '', detail: '' }, full, null]);
  assert.doesNotMatch(JSON.stringify(shownCalls(all, false)), /secret/);
});

test('a long stack keeps its beginning and its end', () => {
  const last = new LastCalls();
  const detail = `begins ${'x'.repeat(1e6)} ends`;
  last.settled(asked('/'), newCall('a'), 500, new ServeError('SERVE_INFERENCE_FAILED', 'm', { detail }));
  const kept = allOf(last.list)[0]?.error?.detail ?? '';
  assert.match(kept, /^begins x+\n…\nx+ ends$/);
  assert.ok(kept.length < MAX_DETAIL_CHARS + 10);
});

test('long paths are cut', () => {
  const last = new LastCalls();
  last.refused(asked(`/${'x'.repeat(9000)}`), new ServeError('SERVE_NOT_FOUND'), 404);
  assert.equal(allOf(last.list)[0]?.path.length, 200);
});

test('the last 200 calls are kept', () => {
  const last = new LastCalls();
  for (let i = 0; i < CALLS_KEPT + 7; i += 1)
    last.refused(asked('/'), new ServeError('SERVE_NOT_FOUND'), 404);
  const kept = allOf(last.list);
  assert.deepEqual([kept.length, kept[0]?.id, kept.at(-1)?.id], [200, 8, 207]);
});

function death(more: Partial<WorkerDeath> = {}): WorkerDeath {
  return {
    pid: 7,
    at: new Date(1e12),
    exit: { code: 1, signal: null },
    how: 'exit code 1',
    cause: 'exit',
    hint: '',
    fatal: null,
    during: 'idle',
    call: null,
    uptimeMs: 5.5,
    finishedCalls: 2,
    stderrTail: ['last words'],
    wanted: false,
    ...more,
  };
}

test('a death is noted with the last lines of stderr, and found by its slot', () => {
  const deaths = new LastDeaths(() => 1);
  const last = death();
  deaths.died(MODEL, { index: 2 }, last);
  const [noted] = allOf(deaths.list);
  assert.deepEqual(
    [noted?.worker, noted?.stderr, noted?.how, noted?.key],
    [2, ['last words'], 'exit code 1', 1],
  );
  assert.equal(deaths.idOf({ lastDeath: last }), 1);
  assert.equal(deaths.idOf({ lastDeath: death() }), null);
  assert.equal(deaths.idOf({ lastDeath: null }), null);
});

test('a death that the server asked for is not noted', () => {
  const deaths = new LastDeaths(() => 1);
  deaths.died(MODEL, { index: 0 }, death({ wanted: true }));
  assert.deepEqual(allOf(deaths.list), []);
});

test('its lines are bounded in number and length', () => {
  const deaths = new LastDeaths(() => 1);
  const stderrTail = Array.from({ length: 50 }, (_, i) => `${i} ${'x'.repeat(5000)}`);
  const fatal = { code: '', message: 'y'.repeat(1e6), detail: '', permanent: false, transient: false };
  deaths.died(MODEL, { index: 0 }, death({ stderrTail, fatal }));
  const [noted] = allOf(deaths.list);
  assert.equal(noted?.stderr.length, 20);
  assert.match(noted.stderr[0] ?? '', /^30 x+…$/);
  assert.deepEqual([noted.stderr[0]?.length, noted.why.length], [200, 2000]);
});

test('without the words there are neither lines nor the reason that the worker gave', () => {
  const deaths = new LastDeaths(() => 1);
  const fatal = { code: '', message: 'secret', detail: '', permanent: false, transient: false };
  deaths.died(MODEL, { index: 0 }, death({ fatal }));
  const [noted] = allOf(deaths.list);
  const [shown] = shownDeaths(allOf(deaths.list), false);
  assert.deepEqual([noted?.why, shown?.why, shown?.stderr, shown?.how], ['secret', '', [], 'exit code 1']);
});
