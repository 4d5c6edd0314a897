/** Properties of the scaling policy under every load: it runs in the simulator, with loads made from a seed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { poisson } from '../dispatch/simulator.js';
import { IDLE_TIMEOUT_MS, ours } from './autoscalers.js';
import {
  simulateScaling,
  type Autoscaler,
  type Bounds,
  type ScaledLoad,
  type ScaledView,
} from './simulator.js';
import { seeded } from '../../helpers/random.js';

interface Case {
  readonly load: ScaledLoad;
  readonly bounds: Bounds;
  readonly isFresh: boolean;
}

/** Loads of all kinds: bursts with pauses around the idle timeout, short runs and long ones, alone and in batches. */
const anyCase = fc
  .record({
    seed: fc.integer(),
    bursts: fc.integer({ min: 1, max: 5 }),
    callsEach: fc.integer({ min: 1, max: 80 }),
    perMs: fc.constantFrom(0.001, 0.01, 0.1, 10),
    runMs: fc.constantFrom(1, 30, 400, 20_000),
    batchSize: fc.constantFrom(1, 1, 8),
    min: fc.integer({ min: 0, max: 2 }),
    more: fc.integer({ min: 0, max: 6 }),
    startMs: fc.constantFrom(50, 3000, 90_000),
    isFresh: fc.boolean(),
  })
  .map(({ seed, bursts, callsEach, perMs, runMs, batchSize, min, more, startMs, isFresh }): Case => {
    const random = seeded(seed);
    const arrivalsMs: number[] = [];
    for (let burst = 0, fromMs = 1; burst < bursts; burst += 1) {
      for (const { atMs } of poisson(callsEach, perMs, random)) arrivalsMs.push(fromMs + atMs);
      fromMs = (arrivalsMs.at(-1) as number) + 2 * random() * IDLE_TIMEOUT_MS;
    }
    const workMs = arrivalsMs.map(() => 2 * random() * runMs);
    // One worker could do all of it, and then each could leave an idle timeout after the other.
    const allMs = workMs.reduce((sum, ms) => sum + ms, 0);
    const endMs = (arrivalsMs.at(-1) as number) + allMs + 20 * 60_000;
    const load = { name: 'any', arrivalsMs, workMs, perRunMs: 1, batchSize, endMs };
    return { load, bounds: { min, max: Math.max(1, min + more), startMs }, isFresh };
  });

/** Checks random cases; a failure prints the seed that repeats it. */
function holds(check: (one: Case) => void): void {
  fc.assert(fc.property(anyCase, check), { numRuns: 150 });
}

test('any idle timeout sees at most as many starts as the maximum of workers', () => {
  let most = 0;
  holds(({ load, bounds, isFresh }) => {
    const { spawnedAtMs } = simulateScaling(load, bounds, ours(bounds, load, isFresh));
    most = Math.max(most, spawnedAtMs.length);
    for (let i = 0; i + bounds.max < spawnedAtMs.length; i += 1) {
      const overMs = (spawnedAtMs[i + bounds.max] as number) - (spawnedAtMs[i] as number);
      assert.ok(overMs > IDLE_TIMEOUT_MS - 1e-3, `${bounds.max + 1} starts within ${overMs} ms`);
    }
  });
  assert.ok(most > 8, 'there were starts');
});

test('the wanted number is within the bounds, the next look later, and no worker is let go while a call waits', () => {
  holds(({ load, bounds, isFresh }) => {
    const policy = ours(bounds, load, isFresh);
    const decide = (view: ScaledView) => {
      const decision = policy.decide(view);
      const { wanted, againAtMs } = decision;
      const have = view.ready.length + view.startingSinceMs.length;
      assert.ok(wanted >= bounds.min && wanted <= bounds.max, `${wanted} workers`);
      assert.ok(againAtMs > view.nowMs || wanted < have);
      if (wanted < have) assert.ok(view.queued === 0 && view.ready.some(({ load: held }) => held === 0));
      return decision;
    };
    simulateScaling(load, bounds, { ...policy, decide } satisfies Autoscaler);
  });
});

test('a while after the last call the minimum is there', () => {
  holds(({ load, bounds, isFresh }) => {
    const { workersAtEnd } = simulateScaling(load, bounds, ours(bounds, load, isFresh));
    assert.equal(workersAtEnd, bounds.min);
  });
});
