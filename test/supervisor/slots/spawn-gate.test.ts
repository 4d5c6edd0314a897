import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Start } from '../../../supervisor/budget/facts.js';
import type { MemoryBudget } from '../../../supervisor/budget/memory-budget.js';
import { SpawnGate, maxRetries } from '../../../supervisor/slots/spawn-gate.js';
import { enter as enterGate, startOf } from './start-of.js';

interface Inside extends Start {
  isRestore: boolean;
  leave: () => void;
}

/** Records its name when it is allowed. */
function enter(gate: SpawnGate, device: string, name: string, record: string[]): () => void {
  return enterGate(gate, startOf({ device, model: 'm', isRetry: false }), () => record.push(name));
}

test('one start at a time per GPU, in order; GPUs do not wait for each other', () => {
  const gate = new SpawnGate(8);
  const record: string[] = [];
  const leaveA = enter(gate, 'gpu 0', 'a', record);
  const leaveB = enter(gate, 'gpu 0', 'b', record);
  enter(gate, 'gpu 0', 'c', record);
  enter(gate, 'gpu 1', 'd', record);
  assert.deepEqual(record, ['a', 'd']);
  leaveA();
  assert.deepEqual(record, ['a', 'd', 'b']);
  leaveB();
  assert.deepEqual(record, ['a', 'd', 'b', 'c']);
});

test('on the CPU only the cap counts', () => {
  const gate = new SpawnGate(2);
  const record: string[] = [];
  const leaveA = enter(gate, 'cpu', 'a', record);
  for (const name of ['b', 'c', 'd']) enter(gate, 'cpu', name, record);
  assert.deepEqual(record, ['a', 'b']);
  leaveA();
  assert.deepEqual(record, ['a', 'b', 'c']);
});

test('a slot that withdraws while it waits is never called, and delays no other', () => {
  const gate = new SpawnGate(1);
  const record: string[] = [];
  const leaveA = enter(gate, 'gpu 0', 'a', record);
  const withdrawB = enter(gate, 'gpu 0', 'b', record);
  enter(gate, 'gpu 1', 'c', record);
  withdrawB();
  leaveA();
  assert.deepEqual(record, ['a', 'c']);
});

test('in any order of events never two start on a GPU, never more than the cap but for one of a model that is down, and no slot waits without a reason', () => {
  const step = fc.oneof(
    fc.record({
      enter: fc.record({
        device: fc.constantFrom('cpu', 'gpu 0', 'gpu 1', 'gpu 2'),
        model: fc.constantFrom('a', 'b'),
        isRetry: fc.boolean(),
      }),
    }),
    fc.record({ leave: fc.nat(20) }),
    fc.record({ down: fc.constantFrom('a', 'b'), is: fc.boolean() }),
  );
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4 }), fc.array(step, { maxLength: 60 }), (cap, steps) => {
      const gate = new SpawnGate(cap);
      const inside: Inside[] = [];
      const waiting: Inside[] = [];
      const down = new Set<string>();
      for (const now of steps) {
        if ('enter' in now) {
          const start = startOf({ ...now.enter, isModelDown: () => down.has(now.enter.model) });
          const entry = { ...start, isRestore: false, leave: () => {} };
          waiting.push(entry);
          entry.leave = enterGate(gate, start, () => {
            waiting.splice(waiting.indexOf(entry), 1);
            entry.isRestore = start.isModelDown();
            inside.push(entry);
          });
        } else if ('down' in now) {
          down[now.is ? 'add' : 'delete'](now.down);
          gate.look();
        } else {
          const all = [...inside, ...waiting];
          const entry = all[now.leave % Math.max(1, all.length)];
          if (entry === undefined) continue;
          for (const list of [inside, waiting]) if (list.includes(entry)) list.splice(list.indexOf(entry), 1);
          entry.leave();
        }
        const gpus = inside.map(({ device }) => device).filter((device) => device !== 'cpu');
        assert.equal(new Set(gpus).size, gpus.length, 'one per GPU');
        const beside = inside.find(({ isRestore }) => isRestore);
        const places = inside.filter((entry) => entry !== beside);
        assert.ok(places.length <= cap);
        const retries = places.filter(({ isRetry }) => isRetry).length;
        assert.ok(retries <= maxRetries(cap));
        const mayGo = waiting.filter(({ device, isRetry, isModelDown }) => {
          if (device !== 'cpu' && gpus.includes(device)) return false;
          if (isModelDown() && beside === undefined) return true;
          return places.length < cap && (!isRetry || retries < maxRetries(cap));
        });
        assert.deepEqual(mayGo, [], 'no slot waits without a reason');
      }
    }),
  );
});

test('a model that was ready and has no ready worker does not wait for first loads: one such start goes beside the cap', () => {
  const gate = new SpawnGate(2);
  const record: string[] = [];
  const go = (given: Partial<Start> & { model: string; device?: string }): (() => void) =>
    enterGate(gate, startOf({ device: 'cpu', isRetry: false, ...given }), () => record.push(given.model));
  const leaveSlow = go({ model: 'slow' });
  go({ model: 'slow' });
  go({ model: 'new' });
  const leaveLost = go({ model: 'lost', isModelDown: () => true, isRetry: true });
  go({ model: 'lost too', isModelDown: () => true });
  assert.deepEqual(record, ['slow', 'slow', 'lost'], 'also if its last start failed');
  leaveSlow();
  assert.deepEqual(record, ['slow', 'slow', 'lost', 'lost too'], 'first in line');
  leaveLost();
  assert.deepEqual(record, ['slow', 'slow', 'lost', 'lost too', 'new'], 'one place is left of the cap');
});

test('on a GPU such a start is first in line, and does not wait for the cap', () => {
  const gate = new SpawnGate(1);
  const record: string[] = [];
  const go = (name: string, device: string, isDown: boolean): (() => void) =>
    enterGate(gate, startOf({ device, model: name, isRetry: false, isModelDown: () => isDown }), () =>
      record.push(name),
    );
  const leaveFirst = go('first', 'gpu 0', false);
  go('second', 'gpu 0', false);
  go('lost on 0', 'gpu 0', true);
  assert.deepEqual(record, ['first'], 'memory peaks during init: never two on a GPU');
  const leaveLost = go('lost on 1', 'gpu 1', true);
  assert.deepEqual(record, ['first', 'lost on 1']);
  leaveLost();
  leaveFirst();
  assert.deepEqual(record, ['first', 'lost on 1', 'lost on 0']);
});

test('a start that replaces a worker goes before one that adds a worker', () => {
  const gate = new SpawnGate(1);
  const record: string[] = [];
  const leave = enter(gate, 'cpu', 'first', record);
  enter(gate, 'cpu', 'added', record);
  const replaces = startOf({ device: 'cpu', model: 'm', isRetry: false, isReplacement: true });
  enterGate(gate, replaces, () => record.push('replaced'));
  leave();
  assert.deepEqual(record, ['first', 'replaced']);
});

test('a start that waits says what it waits for', () => {
  const lacking = {
    enter() {},
    mayGo: ({ model }: Start) => model !== 'large',
    lackOf: () => 'memory: it needs 2 GB',
  };
  const gate = new SpawnGate(4, lacking as unknown as MemoryBudget);
  const reasonOf = (given: Parameters<typeof startOf>[0]): string | undefined => {
    const start = startOf(given);
    enterGate(gate, start, () => {});
    return gate.waitsFor(start) ?? undefined;
  };
  assert.equal(reasonOf({ device: 'gpu 0', model: 'm@1', isRetry: true }), undefined, 'it has gone');
  assert.equal(
    reasonOf({ device: 'gpu 0', model: 'n@1', isRetry: false }),
    'gpu 0, where a worker of m@1 is starting',
  );
  assert.equal(reasonOf({ device: 'cpu', model: 'large', isRetry: false }), 'memory: it needs 2 GB');
  assert.equal(reasonOf({ device: 'cpu', model: 'm@1', isRetry: true }), undefined);
  assert.equal(
    reasonOf({ device: 'cpu', model: 'bad@1', isRetry: true }),
    '2 workers of m@1 to become ready (starts after a failed one have 2 of --spawn-concurrency 4)',
  );
  for (const model of ['n@1', 'm@1'])
    assert.equal(reasonOf({ device: 'cpu', model, isRetry: false }), undefined);
  assert.equal(
    reasonOf({ device: 'cpu', model: 'n@1', isRetry: false }),
    '3 workers of m@1, 1 of its own model to become ready (--spawn-concurrency 4)',
  );
});

test('starts after a failed one go last, even if they came first, and never use the whole cap', () => {
  const gate = new SpawnGate(2);
  const record: string[] = [];
  const retry = (name: string): (() => void) =>
    enterGate(gate, startOf({ device: 'cpu', model: 'loops', isRetry: true }), () => record.push(name));
  const leaveFirst = retry('retry 1');
  retry('retry 2');
  assert.deepEqual(record, ['retry 1'], 'a place stays free');
  const leaveGood = enter(gate, 'cpu', 'good', record);
  enter(gate, 'cpu', 'better', record);
  assert.deepEqual(record, ['retry 1', 'good']);
  leaveFirst();
  assert.deepEqual(record, ['retry 1', 'good', 'better'], 'before the retry that waited longer');
  leaveGood();
  assert.deepEqual(record, ['retry 1', 'good', 'better', 'retry 2']);
});

test('with a cap of 1, starts after a failed one go when no other waits', () => {
  const gate = new SpawnGate(1);
  const record: string[] = [];
  enterGate(gate, startOf({ device: 'cpu', model: 'loops', isRetry: true }), () => record.push('retry'))();
  assert.deepEqual(record, ['retry']);
});

test('models take turns: one that asks for many workers does not keep out one that asks later', () => {
  const gate = new SpawnGate(2);
  const record: string[] = [];
  const leaves = [1, 2, 3, 4].map((n) =>
    enterGate(gate, startOf({ device: 'cpu', model: 'many', isRetry: false }), () =>
      record.push(`many ${n}`),
    ),
  );
  enterGate(gate, startOf({ device: 'cpu', model: 'one', isRetry: false }), () => record.push('one'));
  leaves[0]?.();
  assert.deepEqual(record, ['many 1', 'many 2', 'one']);
});
