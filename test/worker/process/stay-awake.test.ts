import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StayAwake } from '../../../worker/process/stay-awake.js';

const ENOUGH_CALLS = 40;

/** A worker whose clock, calls and turns of the event loop are ours. */
class Bench {
  nowMs = 0;
  readonly turns: (() => void)[] = [];
  readonly awake = new StayAwake(
    () => this.nowMs,
    (turn) => this.turns.push(turn),
  );

  /** One call `gapMs` after the last answer, running for `runMs`. */
  call(gapMs: number, runMs: number, atOnce = 1): void {
    this.pass(gapMs);
    for (let i = 0; i < atOnce; i += 1) this.awake.onCall();
    this.pass(runMs);
    this.awake.onIdle();
  }

  calls(gapMs: number, runMs: number, atOnce = 1): void {
    for (let i = 0; i < ENOUGH_CALLS; i += 1) this.call(gapMs, runMs, atOnce);
  }

  /** Time goes by in steps of 0.1 ms, a turn of the event loop in each. */
  pass(ms: number): void {
    for (let step = 0; step < Math.round(ms * 10); step += 1) {
      this.nowMs += 0.1;
      this.turns.shift()?.();
    }
  }

  get isAwake(): boolean {
    return this.turns.length > 0;
  }
}

test('a worker stays awake between the short calls of a single caller, and for a moment after the last', () => {
  const bench = new Bench();
  bench.calls(0.3, 0.2);
  assert.equal(bench.turns.length, 1, 'it turns, once');
  bench.pass(0.5);
  assert.ok(bench.isAwake);
  bench.pass(1);
  assert.ok(!bench.isAwake, 'then it sleeps');
});

test('a worker does not spin while a call is being answered', () => {
  const bench = new Bench();
  bench.calls(0.3, 0.2);
  bench.awake.onCall();
  bench.pass(0.1);
  assert.ok(!bench.isAwake);
});

for (const [name, gapMs, runMs, atOnce] of [
  ['calls far between', 2, 0.2, 1],
  ['long calls', 0.3, 2, 1],
  ['the calls of several callers', 0.3, 0.2, 2],
] as const) {
  test(`it sleeps at once beside ${name}, and again after the first of them`, () => {
    const bench = new Bench();
    bench.calls(gapMs, runMs, atOnce);
    assert.ok(!bench.isAwake);
    bench.calls(0.3, 0.2);
    assert.ok(bench.isAwake);
    bench.call(gapMs, runMs, atOnce);
    assert.ok(!bench.isAwake);
  });
}

test('a few short calls one by one do not keep the thread awake', () => {
  const bench = new Bench();
  for (let i = 0; i < 10; i += 1) bench.call(0.3, 0.2);
  assert.ok(!bench.isAwake);
});

test('idling without a call changes nothing', () => {
  const bench = new Bench();
  bench.calls(0.3, 0.2);
  bench.pass(2);
  bench.awake.onIdle();
  assert.ok(!bench.isAwake);
});
