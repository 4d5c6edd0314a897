import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { sendAhead } from '../../../supervisor/dispatch/batcher.js';
import { ServiceTime } from '../../../supervisor/dispatch/service-time.js';

function measured(...runsMs: number[]): ServiceTime {
  const service = new ServiceTime();
  for (const runMs of runsMs) service.add(runMs, 0);
  return service;
}

/** Five calls that move this many bytes each. */
function moving(bytes: number, runMs: number): ServiceTime {
  const service = new ServiceTime();
  for (let i = 0; i < 5; i += 1) service.add(runMs, bytes);
  return service;
}

function times(count: number, runMs: number): number[] {
  return Array<number>(count).fill(runMs);
}

test('four calls predict nothing, five do', () => {
  assert.equal(measured(...times(4, 10)).meanMs, null);
  assert.equal(measured(...times(4, 10)).predictWaitMs(10, 1), null);
  assert.equal(measured(...times(5, 10)).meanMs, 10);
});

test('the mean of the first calls is their mean; later it follows a change within some tens of calls', () => {
  assert.equal(measured(1, 2, 3, 4, 5).meanMs, 3);
  const service = measured(...times(100, 1), ...times(30, 100));
  assert.ok((service.meanMs as number) > 90);
});

test('a slow call is remembered, and fades', () => {
  const service = measured(...times(10, 1), 100);
  assert.equal(service.slowMs, 100);
  for (const runMs of times(35, 1)) service.add(runMs, 0);
  assert.ok(service.slowMs > 45 && service.slowMs < 55, String(service.slowMs));
});

test('the mean lies within what was measured, and the slowest is at least the newest', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), { minLength: 5, maxLength: 200 }),
      (runs) => {
        const service = measured(...runs);
        const mean = service.meanMs as number;
        assert.ok(mean >= Math.min(...runs) - 1e-6 && mean <= Math.max(...runs) + 1e-6);
        assert.ok(service.slowMs >= (runs.at(-1) as number) && service.slowMs <= Math.max(...runs));
      },
    ),
  );
});

for (const [ahead, workers, waitMs] of [
  [0, 1, 0],
  [1, 2, 0],
  [1, 1, 5],
  [10, 1, 95],
  [10, 4, 20],
  [5, 0, null],
] as const) {
  test(`calls of 10 ms: behind ${ahead} others with ${workers} workers the wait is ${waitMs ?? 'unknown'}`, () => {
    assert.equal(measured(...times(5, 10)).predictWaitMs(ahead, workers), waitMs);
  });
}

test('a longer line never shortens a prediction, and more workers never lengthen it', () => {
  const service = measured(...times(5, 10));
  fc.assert(
    fc.property(fc.nat(1000), fc.integer({ min: 1, max: 64 }), (ahead, workers) => {
      const wait = service.predictWaitMs(ahead, workers) as number;
      assert.ok(wait >= 0);
      assert.ok((service.predictWaitMs(ahead + 1, workers) as number) >= wait);
      assert.ok((service.predictWaitMs(ahead, workers + 1) as number) <= wait);
    }),
  );
});

for (const [what, service, ahead] of [
  ['nothing is known', measured(1, 1, 1, 1), 0],
  ['calls take no time at all', measured(...times(5, 0)), 64],
  ['calls take 0.01 ms', measured(...times(5, 0.01)), 64],
  ['calls take 0.5 ms', measured(...times(5, 0.5)), 4],
  ['calls take 2 ms', measured(...times(5, 2)), 1],
  ['calls take 20 ms', measured(...times(5, 20)), 1],
  ['calls take 26 ms', measured(...times(5, 26)), 0],
  ['one of the last calls took long', measured(...times(20, 0.1), 30), 0],
  ['calls of 30 ms move 2 MB each', moving(2e6, 30), 1],
  ['calls of 260 ms move 2 MB each', moving(2e6, 260), 0],
  ['calls of 1 ms move 2 MB each', moving(2e6, 1), 2],
  ['calls of 0.2 ms move 200 MB each', moving(2e8, 0.2), 1],
  ['the one that took long is a while ago', measured(...times(5, 0.5), 30, ...times(100, 0.5)), 4],
] as const) {
  test(`sendAhead is ${ahead} when ${what}`, () => assert.equal(sendAhead(service, 2), ahead));
}

for (const [what, service, ahead] of [
  ['calls take 0.5 ms', measured(...times(5, 0.5)), 4],
  ['calls take 26 ms', measured(...times(5, 26)), 1],
  ['calls take 51 ms', measured(...times(5, 51)), 0],
  ['one of the last calls took long', measured(...times(20, 0.1), 60), 0],
] as const) {
  test(`sendAhead to the only worker is ${ahead} when ${what}`, () =>
    assert.equal(sendAhead(service, 1), ahead));
}

/** Batches of these sizes, of a model that takes 5 ms for a run and 0.2 ms for a call. */
function batches(...sizes: number[]): ServiceTime {
  const service = new ServiceTime();
  for (const calls of sizes) service.add(5 + 0.2 * calls, 0, calls);
  return service;
}

test('batches of several sizes give the time of a run and the time of a call', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 32 }), { minLength: 3, maxLength: 50 }), (sizes) => {
      const service = batches(1, 32, ...sizes);
      const near = (predictedMs: number | null, ms: number): void =>
        assert.ok(Math.abs((predictedMs ?? NaN) - ms) < 1e-6, `${predictedMs} ms`);
      near(service.predictMs(1, 1), 5.2);
      near(service.predictMs(32, 1), 11.4);
      near(service.predictMs(64, 2), 22.8);
    }),
  );
});

test('the time of a call in a batch is kept while all batches have one size', () => {
  const sizes = Array<number>(200).fill(8);
  const ms = batches(1, 32, ...sizes).predictMs(16, 1) as number;
  assert.ok(Math.abs(ms - 8.2) < 1e-6, `${ms} ms`);
});

test('batches of one size predict nothing about others: a run is expected to take the mean of the last ones', () => {
  assert.equal(batches(8, 8, 8, 8, 8).predictMs(1, 1), 6.6);
});

test('a call behind two full batches waits for one and a half: the first is half done', () => {
  assert.equal(batches(...Array<number>(5).fill(10)).predictWaitMs(20, 1, 2), 10.5);
});
