import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decide } from '../../../supervisor/budget/decide.js';
import type {
  BudgetFacts,
  BudgetedFacts,
  HeldWorker,
  Pool,
  StartClaim,
  Step,
} from '../../../supervisor/budget/facts.js';
import { startOf } from '../slots/start-of.js';

const NOW_MS = 1_000_000;

function worker(id: number, bytes: number, more: Partial<HeldWorker> = {}, pool = 'memory'): HeldWorker {
  return {
    id,
    model: `m${id}`,
    device: 'cpu',
    bytes: new Map([[pool, bytes]]),
    state: 'idle',
    sinceMs: 0,
    idleSinceMs: NOW_MS - 1000,
    isProven: true,
    ...more,
  };
}

function model(name: string, more: Partial<BudgetedFacts> = {}): BudgetedFacts {
  const rest = { wanted: 1, hasCallers: true, workers: [] };
  return { name, pinned: 0, mayLeave: 1, startMs: 1000, queueTimeoutMs: 300_000, ...rest, ...more };
}

function start(
  name: string,
  need: number | null,
  { afterLeaving = false, ...more }: Partial<StartClaim> & { readonly afterLeaving?: boolean } = {},
): StartClaim {
  return {
    start: startOf({ model: name, afterLeaving }),
    model: name,
    sinceMs: NOW_MS - 100,
    needs: new Map([['memory', need]]),
    kind: 'first',
    isNeeded: true,
    isRestore: false,
    ...more,
  };
}

function facts(
  workers: readonly HeldWorker[],
  starts: readonly StartClaim[],
  more: Partial<BudgetFacts> = {},
): BudgetFacts {
  const usedBytes = workers.reduce((sum, { bytes }) => sum + (bytes.get('memory') ?? 0), 0);
  const names = new Set([...workers, ...starts].map((one) => one.model));
  return {
    nowMs: NOW_MS,
    pools: [pool('memory', usedBytes, usedBytes > 100 ? NOW_MS - 500 : null)],
    promised: new Map(),
    starts,
    workers,
    models: Array.from(names, (name) => model(name)),
    expendables: [],
    ...more,
  };
}

function pool(name: string, usedBytes: number, overSinceMs: number | null = null): Pool {
  return { name, limitBytes: 100, ownBytes: usedBytes, usedBytes, readAtMs: NOW_MS, overSinceMs };
}

/** `go a`, `leave 1 memory`, `wait a`. */
function said(steps: readonly Step[]): string[] {
  return steps.map((step) => {
    if (step.kind === 'leave') return `leave ${step.id} ${step.why.rule}`;
    if (step.kind === 'refuseWorker') return `refuse ${step.id} ${step.why.rule}`;
    if (step.kind === 'refuseStart') return `refuse ${step.start.model} ${step.why.rule}`;
    return `${step.kind} ${step.start.model}`;
  });
}

const rows: [string, BudgetFacts, string[]][] = [
  ['a start that fits goes', facts([worker(1, 60)], [start('a', 40)]), ['go a']],
  ['an unknown start goes if anything is free', facts([worker(1, 99)], [start('a', null)]), ['go a']],
  [
    'what starts under way will take is not free',
    facts([worker(1, 50)], [start('a', 40)], { promised: new Map([['memory', 20]]) }),
    ['leave 1 memory', 'wait a'],
  ],
  [
    'a start waits for figures that were read after it came',
    facts([], [start('a', 40, { sinceMs: NOW_MS + 1 })]),
    [],
  ],
  [
    'the least recently used idle worker leaves',
    facts([worker(1, 50), worker(2, 50, { idleSinceMs: NOW_MS - 9000 })], [start('a', 40)]),
    ['leave 2 memory', 'wait a'],
  ],
  [
    'a model that lost its last worker goes before first loads that waited longer',
    facts(
      [worker(1, 50)],
      [start('new', 40, { sinceMs: NOW_MS - 900 }), start('lost', 40, { isRestore: true })],
    ),
    ['go lost', 'leave 1 memory', 'wait new'],
  ],
  [
    'one whose start takes long stays longer',
    facts([worker(1, 50), worker(2, 50, { idleSinceMs: NOW_MS - 9000 })], [start('a', 40)], {
      models: [model('m1'), model('m2', { startMs: 60_000 }), model('a')],
    }),
    ['leave 1 memory', 'wait a'],
  ],
  [
    'spares leave first',
    facts([worker(1, 50)], [start('a', 60)], {
      pools: [pool('memory', 70)],
      expendables: [
        { id: 8, bytes: new Map([['memory', 10]]) },
        { id: 9, bytes: new Map([['memory', 20]]) },
      ],
    }),
    ['leave 8 memory', 'leave 9 memory', 'wait a'],
  ],
  [
    'then workers that stand by, also of a model that can spare none',
    facts(
      [worker(1, 50, { idleSinceMs: 0 }), worker(2, 40, { model: 'm3', state: 'standby' })],
      [start('a', 40)],
      {
        models: [model('m1'), model('m3', { mayLeave: 0, pinned: 1 }), model('a')],
      },
    ),
    ['leave 2 memory', 'wait a'],
  ],
  [
    'workers of the minimum stay',
    facts([worker(1, 80)], [start('a', 40)], {
      models: [model('m1', { mayLeave: 0, pinned: 1 }), model('a')],
    }),
    ['wait a'],
  ],
  [
    'no more leave than are needed',
    facts([worker(1, 10, { idleSinceMs: 0 }), worker(2, 80)], [start('a', 60)]),
    ['leave 2 memory', 'wait a'],
  ],
  [
    'none leaves if all together hold too little',
    facts([worker(1, 30), worker(2, 60, { state: 'busy' })], [start('a', 60)]),
    ['wait a'],
  ],
  [
    'what is leaving already is enough',
    facts([worker(1, 50, { state: 'leaving' }), worker(2, 50)], [start('a', 40)]),
    ['wait a'],
  ],
  [
    'who has waited longest is served first, and a smaller start does not overtake it',
    facts(
      [worker(1, 70, { state: 'busy' })],
      [start('small', 20), start('old', 50, { sinceMs: NOW_MS - 900 })],
    ),
    ['wait old', 'wait small'],
  ],
  [
    'a start that needs none of the scarce memory is not held up',
    facts(
      [worker(1, 90, { state: 'busy' }, 'gpu 0')],
      [
        start('a', 0, { needs: new Map([['gpu 0', 50]]) }),
        start('b', 0, { needs: new Map([['gpu 1', 50]]) }),
      ],
      { pools: [pool('gpu 0', 90), pool('gpu 1', 0)] },
    ),
    ['wait a', 'go b'],
  ],
  [
    'an extra worker comes after the first ones, and busy ones never leave for it',
    facts(
      [worker(1, 80, { state: 'busy' })],
      [start('extra', 30, { kind: 'extra', sinceMs: 0 }), start('a', 20)],
    ),
    ['go a', 'wait extra'],
  ],
  [
    'nothing leaves for a start that no call waits for, and it holds up no other',
    facts(
      [worker(1, 80)],
      [
        start('a', 30, { isNeeded: false, sinceMs: NOW_MS - 59_000 }),
        start('b', 20),
        start('c', 0, { isNeeded: false }),
      ],
    ),
    ['go b', 'wait a', 'go c'],
  ],
  [
    'it is given up after a minute',
    facts([worker(1, 80)], [start('a', 30, { isNeeded: false, sinceMs: NOW_MS - 60_000 })]),
    ['withdraw a'],
  ],
  [
    'a turn ends after ten starts of waiting',
    facts([worker(1, 80, { state: 'busy' })], [start('a', 30, { sinceMs: NOW_MS - 10_000 })]),
    ['leave 1 turn', 'wait a'],
  ],
  [
    'a turn lasts until then',
    facts([worker(1, 80, { state: 'busy' })], [start('a', 30, { sinceMs: NOW_MS - 9999 })]),
    ['wait a'],
  ],
  [
    'a turn takes at most a quarter of the queue timeout of the one that waits',
    facts([worker(1, 80, { state: 'busy' })], [start('a', 30, { sinceMs: NOW_MS - 1000 })], {
      models: [model('m1'), model('a', { queueTimeoutMs: 4000 })],
    }),
    ['leave 1 turn', 'wait a'],
  ],
  [
    'a worker that was ready later has its turn from then on',
    facts([worker(1, 80, { state: 'busy', sinceMs: NOW_MS - 9000 })], [start('a', 30, { sinceMs: 0 })]),
    ['wait a'],
  ],
  [
    'one that proves too large sends idle ones away, and no start goes meanwhile',
    facts([worker(1, 60), worker(2, 70, { state: 'starting' })], [start('a', null)]),
    ['leave 1 memory', 'wait a'],
  ],
  [
    'what alone exceeds the budget is refused, but not during a call',
    facts([worker(1, 120, { state: 'starting' }), worker(2, 130, { state: 'busy' })], []),
    ['refuse 1 alone'],
  ],
  [
    'workers that always stay and do not fit together: the newest is refused',
    facts([worker(1, 60), worker(2, 60, { state: 'starting', sinceMs: NOW_MS - 10, isProven: false })], [], {
      models: [
        model('m1', { pinned: Infinity, mayLeave: 0 }),
        model('m2', { pinned: Infinity, mayLeave: 0 }),
      ],
    }),
    ['refuse 2 together'],
  ],
  [
    'so is a start of one whose cost is known',
    facts([worker(1, 60)], [start('a', 50)], {
      models: [model('m1', { pinned: 1, mayLeave: 0 }), model('a', { pinned: Infinity, mayLeave: 0 })],
    }),
    ['refuse a together'],
  ],
  [
    'a renewal that will never fit beside the present worker is refused',
    facts([worker(1, 60, { model: 'a', state: 'busy' })], [start('a', 60, { kind: 'renewal' })]),
    ['refuse a together'],
  ],
  [
    'a worker of the same model that stands by leaves for a renewal',
    facts(
      [worker(1, 40, { model: 'a', state: 'busy' }), worker(2, 40, { model: 'a', state: 'standby' })],
      [start('a', 40, { kind: 'renewal' })],
    ),
    ['leave 2 memory', 'wait a'],
  ],
  [
    'two renewals do not wait for the memory of each other for longer than a minute',
    facts(
      [worker(1, 40, { model: 'a', state: 'busy' }), worker(2, 40, { model: 'b', state: 'busy' })],
      ['a', 'b'].map((name) => start(name, 40, { kind: 'renewal', sinceMs: NOW_MS - 60_000 })),
      { models: ['a', 'b'].map((name) => model(name, { mayLeave: 0 })) },
    ),
    ['refuse a together', 'refuse b together'],
  ],
  [
    'a second try waits until the other one has left',
    facts([worker(1, 10, { state: 'leaving' })], [start('a', null, { afterLeaving: true })]),
    ['wait a'],
  ],
];

for (const [title, given, steps] of rows)
  test(title, () => {
    assert.deepEqual(said(decide(given)), steps);
  });

test('the lack of memory is told with its figures', () => {
  const [step] = decide(facts([worker(1, 80, { state: 'busy' })], [start('a', 30)]));
  assert.deepEqual(step?.kind === 'wait' && step.lack, {
    pool: 'memory',
    limitBytes: 100,
    usedBytes: 80,
    needBytes: 30,
  });
});

const STATES = ['starting', 'idle', 'busy', 'leaving'] as const;

const someFacts = fc
  .record({
    workers: fc.array(
      fc.tuple(fc.integer({ min: 1, max: 60 }), fc.constantFrom(...STATES), fc.nat(20_000), fc.nat(4)),
      {
        maxLength: 6,
      },
    ),
    starts: fc.array(fc.tuple(fc.option(fc.integer({ min: 1, max: 100 })), fc.nat(20_000), fc.nat(6)), {
      maxLength: 4,
    }),
    mayLeave: fc.array(fc.nat(2), { minLength: 7, maxLength: 7 }),
  })
  .map(({ workers, starts, mayLeave }) =>
    facts(
      workers.map(([bytes, state, ageMs, of], i) =>
        worker(i + 1, bytes, {
          state,
          model: `m${of}`,
          sinceMs: NOW_MS - ageMs,
          idleSinceMs: NOW_MS - ageMs,
        }),
      ),
      starts.map(([need, waitedMs, of], i) =>
        start(`s${i}`, need, { model: `m${of}`, sinceMs: NOW_MS - waitedMs }),
      ),
      { models: mayLeave.map((count, i) => model(`m${i}`, { mayLeave: count })) },
    ),
  );

test('in any state: known starts never exceed the budget, no worker leaves before its turn, none below a minimum', () => {
  fc.assert(
    fc.property(someFacts, (given) => {
      const steps = decide(given);
      let free = 100 - (given.pools[0] as Pool).usedBytes;
      const left = new Map<string, number>();
      for (const step of steps) {
        if (step.kind === 'go') {
          const { needs } = given.starts.find((one) => one.start === step.start) as StartClaim;
          free -= needs.get('memory') ?? 1;
          assert.ok(free >= 0, 'over the budget');
        }
        if (step.kind !== 'leave') continue;
        const one = given.workers.find(({ id }) => id === step.id) as HeldWorker;
        left.set(one.model, (left.get(one.model) ?? 0) + 1);
        assert.ok(one.state === 'idle' || (one.state === 'busy' && step.why.rule === 'turn'), one.state);
        if (step.why.rule === 'turn') assert.ok(step.why.ms >= 10_000, 'its turn is not over');
      }
      for (const { name, mayLeave } of given.models) assert.ok((left.get(name) ?? 0) <= mayLeave);
    }),
    { numRuns: 500 },
  );
});

test('every start that waits goes in the end, however busy the others are', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 30, max: 100 }), { minLength: 2, maxLength: 6 }), (sizes) => {
      // Every model always has calls: each start that went holds its memory until its turn is over, then waits again.
      let nowMs = NOW_MS;
      const went = new Set<string>();
      let workers: HeldWorker[] = [];
      let starts = sizes.map((bytes, i) => start(`m${i}`, bytes, { sinceMs: nowMs + i }));
      const sizeOf = (name: string): number => sizes[Number(name.slice(1))] as number;
      for (let i = 0; i < 40 * sizes.length; i += 1) {
        nowMs += 2000;
        const given = facts(workers, starts);
        const current = { ...given, nowMs, pools: given.pools.map((one) => ({ ...one, readAtMs: nowMs })) };
        for (const step of decide(current)) {
          if (step.kind === 'go') {
            const { model: name } = step.start;
            went.add(name);
            starts = starts.filter((one) => one.start !== step.start);
            const id = Number(name.slice(1)) + 1;
            workers = [...workers, worker(id, sizeOf(name), { model: name, state: 'busy', sinceMs: nowMs })];
          } else if (step.kind === 'leave') {
            const { model: name } = workers.find(({ id }) => id === step.id) as HeldWorker;
            workers = workers.filter(({ id }) => id !== step.id);
            starts = [...starts, start(name, sizeOf(name), { sinceMs: nowMs })];
          }
        }
      }
      assert.equal(went.size, sizes.length);
    }),
    { numRuns: 50 },
  );
});
