/** Properties of the batcher under every load: it runs in the simulator, with loads made from a seed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  poisson,
  simulate,
  type Load,
  type SimulatedCall,
  type SimulatedWorker,
  type Watcher,
} from './simulator.js';
import { seeded } from '../../helpers/random.js';

const ROUTES = ['/a', '/b', '/c'];

/** Loads of all kinds: calm and crowded, one route and three, with deadlines and without. */
const load = fc
  .record({
    seed: fc.integer(),
    calls: fc.integer({ min: 1, max: 150 }),
    perMs: fc.double({ min: 0.02, max: 5, noNaN: true }),
    routes: fc.integer({ min: 1, max: 3 }),
    workers: fc.integer({ min: 1, max: 4 }),
    batchSize: fc.integer({ min: 1, max: 8 }),
    maxBatchDelayMs: fc.constantFrom(0, 0, 1, 5, 40),
    perCallMs: fc.double({ min: 0, max: 2, noNaN: true }),
    perRunMs: fc.double({ min: 0.01, max: 10, noNaN: true }),
    deadlineMs: fc.option(fc.integer({ min: 1, max: 100 })),
    /** Calls of the last route run alone. */
    hasSingles: fc.boolean(),
  })
  .map((facts): Load => {
    const random = seeded(facts.seed);
    const { batchSize, maxBatchDelayMs, deadlineMs, routes, workers } = facts;
    const arrivals = poisson(facts.calls, facts.perMs, random).map(({ atMs }) => ({
      atMs,
      route: ROUTES[Math.floor(random() * routes)] as string,
      deadlineAtMs: deadlineMs === null ? null : atMs + deadlineMs * (0.5 + random()),
    }));
    return {
      arrivals,
      workers,
      rules: { batchSize, maxBatchDelayMs },
      runMs: (calls) => facts.perRunMs + facts.perCallMs * calls,
      maxBatch: (route) => (facts.hasSingles && route === ROUTES.at(-1) ? 1 : 0xffff),
    };
  });

/** Checks random loads; a failure prints the seed that repeats it. */
function holds(check: (load: Load) => void): void {
  fc.assert(fc.property(load, check), { numRuns: 300 });
}

function sizeFor({ rules, maxBatch = () => 0xffff }: Load, route: string): number {
  return Math.min(rules.batchSize, maxBatch(route));
}

/** Whether the batch of a line is due. */
function isDue(load: Load, line: readonly SimulatedCall[], nowMs: number): boolean {
  const [head] = line;
  if (head === undefined) return false;
  return line.length >= sizeFor(load, head.route) || nowMs - head.atMs >= load.rules.maxBatchDelayMs;
}

test('no worker is ever idle beside a batch that is due', () => {
  holds((load) => {
    const watcher: Watcher = {
      onSettled({ nowMs, lines, workers }) {
        if (workers.every(({ load }) => load > 0)) return;
        const waiting = [...lines];
        for (const { route } of waiting) {
          const line = waiting.filter((call) => call.route === route);
          assert.ok(!isDue(load, line, nowMs), `due at ${nowMs}`);
        }
      },
    };
    simulate(load, watcher);
  });
});

test('every call is in one batch or was given up, and no call in two', () => {
  holds((load) => {
    const { calls, batches, dropped } = simulate(load);
    const ended = [...batches.flatMap((batch) => batch.calls), ...dropped];
    assert.equal(calls.length, load.arrivals.length);
    assert.equal(ended.length, calls.length);
    assert.equal(new Set(ended).size, calls.length);
    assert.ok(batches.flatMap((batch) => batch.calls).every(({ endedAtMs }) => endedAtMs >= 0));
  });
});

test('a batch is of one route and no larger than that route or --batch-size allows', () => {
  holds((load) => {
    for (const { calls } of simulate(load).batches) {
      const [{ route }] = calls as [SimulatedCall];
      assert.ok(calls.length <= sizeFor(load, route));
      assert.ok(calls.every((call) => call.route === route));
    }
  });
});

test('calls of one route are given to workers in the order in which they came', () => {
  holds((load) => {
    const { batches } = simulate(load);
    for (const route of ROUTES) {
      const given = batches.flatMap(({ calls }) => calls.filter((call) => call.route === route));
      const order = given.map(({ index }) => index);
      assert.deepEqual(
        order,
        order.toSorted((a, b) => a - b),
      );
    }
  });
});

test('a call waits beside an idle worker no longer than the delay', () => {
  holds((load) => {
    const waitedMs = new Map<SimulatedCall, number>();
    let [lastMs, waiting]: [number, SimulatedCall[]] = [0, []];
    simulate(load, {
      onSettled({ nowMs, lines, workers }) {
        for (const call of waiting) waitedMs.set(call, (waitedMs.get(call) ?? 0) + nowMs - lastMs);
        [lastMs, waiting] = [nowMs, workers.some(({ load }) => load === 0) ? [...lines] : []];
      },
    });
    for (const ms of waitedMs.values()) assert.ok(ms <= load.rules.maxBatchDelayMs + 1e-6, `${ms} ms`);
  });
});

test('nothing is sent ahead while a worker is idle, and behind a batch of several at most one more', () => {
  holds((load) => {
    simulate(load, {
      onPlan({ worker, calls }, { workers }) {
        if (worker === null || worker.load === 0 || calls.length === 0) return;
        assert.ok(
          workers.every((other) => other.load > 0),
          'none is idle',
        );
        if (calls.length > 1 || worker.load > worker.heldBatches) assert.equal(worker.heldBatches, 1);
      },
    });
  });
});

/** Time until this worker could begin another batch. */
function restMs({ runMs }: Load, { held, runningMs }: SimulatedWorker): number {
  return held.reduce((sum, { calls }) => sum + runMs(calls.length), -runningMs);
}

test('a call is given up for its deadline only if its batch would end after it, and others fill that batch', () => {
  let givenUp = 0;
  holds((load) => {
    simulate(
      { ...load, isKnown: true },
      {
        onPlan({ worker, late }, { nowMs, lines }) {
          const [first] = late;
          if (worker === null || first === undefined) return;
          const { route } = first;
          const inLine = [...lines].filter((call) => call.route === route).length;
          const size = Math.min(sizeFor(load, route), inLine);
          const endsAtMs = nowMs + restMs(load, worker) + load.runMs(size);
          const slackMs = 2;
          for (const { deadlineAtMs } of late)
            assert.ok(endsAtMs + slackMs > (deadlineAtMs as number) - 1e-6);
          assert.ok(lines.length - late.length >= size);
          givenUp += late.length;
        },
      },
    );
  });
  assert.ok(givenUp > 0, 'it happened');
});
