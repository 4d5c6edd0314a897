import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../../../protocol/errors.js';
import type { Call } from '../../../supervisor/dispatch/call.js';
import type { CountedRequest } from '../../../supervisor/http/request/request-context.js';
import { CallCounts, Buckets, SECONDS } from '../../../supervisor/metrics/call-counts.js';
import type { Model } from '../../../supervisor/models/model.js';

const MODEL = { spec: { name: 'digits', version: '1' } } as Model;

function asked(dialect = 'banana', model: Model | null = MODEL, counts = true): CountedRequest {
  return { model, dialect: { name: dialect }, counts } as unknown as CountedRequest;
}

/** A job that has begun, unless `runMs` is null. */
function call(runMs: number | null, calls = 1): Call {
  const facts = { acceptedAtMs: performance.now() - 20, runMs: runMs ?? 0, hasBegun: runMs !== null };
  return { ...facts, queueMs: () => 3, batch: calls === 1 ? null : { calls } } as unknown as Call;
}

test('calls are counted by dialect, and by ok or error code; a refusal of the app with 4xx is ok', () => {
  const counts = new CallCounts();
  counts.settled(asked(), call(1), 200, null);
  counts.settled(asked('gateway'), call(1), 200, null);
  counts.settled(asked(), call(1), 500, new ServeError('SERVE_INFERENCE_FAILED'));
  counts.refused(asked(), new ServeError('SERVE_QUEUE_FULL'));
  counts.settled(asked(), call(1), 404, new ServeError('SERVE_HTTP_ERROR', 'gone', { status: 404 }));
  counts.settled(asked(), call(1), 503, new ServeError('SERVE_HTTP_ERROR', 'later', { status: 503 }));
  const ends = Object.fromEntries(
    [...counts.of(MODEL).ends].map(([dialect, codes]) => [dialect, Object.fromEntries(codes)]),
  );
  assert.deepEqual(ends, {
    banana: { ok: 2, SERVE_INFERENCE_FAILED: 1, SERVE_QUEUE_FULL: 1, SERVE_HTTP_ERROR: 1 },
    gateway: { ok: 1 },
  });
});

test('a refused request that is not a call is not counted', () => {
  const counts = new CallCounts();
  counts.refused(asked('banana', null, false), new ServeError('SERVE_NOT_FOUND'));
  assert.equal(counts.ofNone.ends.size, 0);
});

test('a call without a model is counted without labels of a model', () => {
  const counts = new CallCounts();
  counts.refused(asked('banana', null), new ServeError('SERVE_MODEL_NOT_FOUND'));
  assert.equal(counts.ofNone.ends.get('banana')?.get('SERVE_MODEL_NOT_FOUND'), 1);
});

test('a call that never began counts for wait and end, but not for run and batch', () => {
  const counts = new CallCounts();
  counts.settled(asked(), call(null), 504, new ServeError('SERVE_QUEUE_TIMEOUT'));
  const calls = counts.of(MODEL);
  const { queueSeconds, totalSeconds, runSeconds } = calls;
  assert.deepEqual(
    [queueSeconds, totalSeconds, runSeconds, calls.countBatches()].map(({ count }) => count),
    [1, 1, 0, 0],
  );
  assert.equal(queueSeconds.sum, 0.003);
});

test('a batch counts once, with its size, when the last of its calls has ended', () => {
  const counts = new CallCounts();
  const end = (): void => counts.settled(asked(), call(1, 3), 200, null);
  end();
  end();
  assert.equal(counts.of(MODEL).countBatches().count, 0);
  end();
  counts.settled(asked(), call(1), 200, null);
  const batchSizes = counts.of(MODEL).countBatches();
  assert.deepEqual([batchSizes.count, batchSizes.sum], [2, 4]);
});

test('the figures of a model are its counts without dialects and codes', () => {
  const counts = new CallCounts();
  counts.settled(asked(), call(1), 200, null);
  counts.settled(asked('gateway'), call(2, 2), 200, null);
  counts.settled(asked('gateway'), call(2, 2), 500, new ServeError('SERVE_INFERENCE_FAILED'));
  counts.refused(asked(), new ServeError('SERVE_QUEUE_FULL'));
  const { ok, failed, queued, run, batches } = counts.of(MODEL).figures();
  assert.deepEqual([ok.count, failed.count, queued.count, run.count], [2, 2, 3, 3]);
  assert.ok(ok.seconds >= 0.04 && failed.seconds >= 0.02, 'each call came 20 ms ago');
  assert.ok(Math.abs(run.seconds - 0.005) < 1e-9 && Math.abs(queued.seconds - 0.009) < 1e-9);
  assert.deepEqual(batches, [
    [1, 1],
    [2, 1],
  ]);
});

test('a value counts in the first bucket with a bound of at least the value', () => {
  const buckets = new Buckets([1, 2, 4]);
  for (const value of [0, 1, 1.5, 2, 4, 4.1, 100]) buckets.add(value);
  assert.deepEqual([...buckets.counts], [2, 2, 1, 2]);
  assert.equal(buckets.count, 7);
  assert.equal(buckets.sum, 112.6);
});

test('add counts a value `times` times', () => {
  const buckets = new Buckets([1, 2]);
  buckets.add(2, 3);
  assert.deepEqual([[...buckets.counts], buckets.sum], [[0, 3, 0], 6]);
});

test('histograms of the same bounds add up', () => {
  const [one, other] = [new Buckets([1]), new Buckets([1])];
  one.add(0.5);
  other.add(3);
  other.addAll(one);
  assert.deepEqual([[...other.counts], other.sum], [[1, 1], 3.5]);
});

test('the bounds of times are ascending, from 0.1 ms to 5 min', () => {
  assert.deepEqual([SECONDS[0], SECONDS.at(-1)], [0.0001, 300]);
  assert.deepEqual(
    SECONDS,
    [...SECONDS].sort((a, b) => a - b),
  );
});
