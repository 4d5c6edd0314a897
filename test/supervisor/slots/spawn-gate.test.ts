import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { SpawnGate, maxRetries, type Start } from '../../../supervisor/slots/spawn-gate.js';
import { startOf } from './start-of.js';

interface Inside extends Start {
  leave: () => void;
}

/** Records its name when it is allowed. */
function enter(gate: SpawnGate, device: string, name: string, record: string[]): () => void {
  return gate.enter(startOf({ device, model: 'm', isRetry: false }), () => record.push(name));
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

test('in any order of events never two start on a GPU, never more than the cap, and no slot waits without a reason', () => {
  const step = fc.oneof(
    fc.record({
      enter: fc.record({
        device: fc.constantFrom('cpu', 'gpu 0', 'gpu 1', 'gpu 2'),
        model: fc.constantFrom('a', 'b'),
        isRetry: fc.boolean(),
      }),
    }),
    fc.record({ leave: fc.nat(20) }),
  );
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4 }), fc.array(step, { maxLength: 60 }), (cap, steps) => {
      const gate = new SpawnGate(cap);
      const inside: Inside[] = [];
      const waiting: Inside[] = [];
      for (const now of steps) {
        if ('enter' in now) {
          const start = startOf(now.enter);
          const entry = { ...start, leave: () => {} };
          waiting.push(entry);
          entry.leave = gate.enter(start, () => {
            waiting.splice(waiting.indexOf(entry), 1);
            inside.push(entry);
          });
        } else {
          const all = [...inside, ...waiting];
          const entry = all[now.leave % Math.max(1, all.length)];
          if (entry === undefined) continue;
          for (const list of [inside, waiting]) if (list.includes(entry)) list.splice(list.indexOf(entry), 1);
          entry.leave();
        }
        const gpus = inside.map(({ device }) => device).filter((device) => device !== 'cpu');
        assert.equal(new Set(gpus).size, gpus.length, 'one per GPU');
        assert.ok(inside.length <= cap);
        const retries = inside.filter(({ isRetry }) => isRetry).length;
        assert.ok(retries <= maxRetries(cap));
        const mayGo = waiting.filter(
          ({ device, isRetry }) =>
            (device === 'cpu' || !gpus.includes(device)) && (!isRetry || retries < maxRetries(cap)),
        );
        if (inside.length < cap) assert.deepEqual(mayGo, [], 'no slot waits without a reason');
      }
    }),
  );
});

test('starts after a failed one go last, even if they came first, and never use the whole cap', () => {
  const gate = new SpawnGate(2);
  const record: string[] = [];
  const retry = (name: string): (() => void) =>
    gate.enter(startOf({ device: 'cpu', model: 'loops', isRetry: true }), () => record.push(name));
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
  gate.enter(startOf({ device: 'cpu', model: 'loops', isRetry: true }), () => record.push('retry'))();
  assert.deepEqual(record, ['retry']);
});

test('models take turns: one that asks for many workers does not keep out one that asks later', () => {
  const gate = new SpawnGate(2);
  const record: string[] = [];
  const leaves = [1, 2, 3, 4].map((n) =>
    gate.enter(startOf({ device: 'cpu', model: 'many', isRetry: false }), () => record.push(`many ${n}`)),
  );
  gate.enter(startOf({ device: 'cpu', model: 'one', isRetry: false }), () => record.push('one'));
  leaves[0]?.();
  assert.deepEqual(record, ['many 1', 'many 2', 'one']);
});
