/** The facts about workers on which the scaling policy decides, from slots in every state. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countWorkers, startLeftMs } from '../../../supervisor/models/demand.js';
import type { Slot } from '../../../supervisor/slots/slot.js';

const NOW_MS = 1_000_000;

interface FakeWorker {
  readonly state: string;
  readonly load: number;
  readonly isFrozen: boolean;
  readonly uptimeMs: number;
  readonly heldBatches: number;
  readonly runningMs: number;
  readonly places: number;
}

const READY: FakeWorker = {
  state: 'ready',
  load: 0,
  isFrozen: false,
  uptimeMs: 5000,
  heldBatches: 0,
  runningMs: 0,
  places: 1,
};
const BUSY = { ...READY, load: 3, heldBatches: 2, runningMs: 70 };
const LOADING = { ...READY, state: 'initializing', uptimeMs: 300 };

function slot(name: string, worker: FakeWorker | null = null, more: object = {}): Slot {
  const failure = name === 'latched' ? new Error('latched') : null;
  return { state: { name, worker, ...more }, worker, failure, lastDeath: null } as unknown as Slot;
}

function counted(
  slots: readonly Slot[],
  isFree = true,
): readonly [ready: number[][], startingAgoMs: number[]] {
  const { ready, startingSinceMs } = countWorkers(slots, () => isFree, NOW_MS);
  return [
    ready.map(({ heldBatches, runningMs }) => [heldBatches, runningMs]),
    startingSinceMs.map((sinceMs) => Math.round(NOW_MS - sinceMs)),
  ];
}

test('a worker that runs several calls at once counts as so many times as fast', () => {
  assert.deepEqual(counted([slot('live', { ...BUSY, places: 7 })]), [[[2, 10]], []]);
});

test('each slot counts once, a latched one never', () => {
  const renewing = slot('renewing', READY, { next: LOADING });
  const slots = [slot('live', READY), slot('live', BUSY), slot('live', LOADING), renewing];
  const others = [slot('waiting'), slot('replacing', BUSY), slot('latched')];
  assert.deepEqual(counted([...slots, ...others]), [
    [
      [0, 0],
      [2, 70],
      [0, 0],
    ],
    [300, 0, 0],
  ]);
});

test('of two workers that are not free, the frozen one may leave, not the one that waits for a job', () => {
  const frozen = [slot('live', { ...READY, isFrozen: true })];
  const mayLeave = [true, false].map(
    (isFree) => countWorkers(frozen, () => isFree, NOW_MS).ready[0]?.isFrozen,
  );
  assert.deepEqual(mayLeave, [true, false]);
});

test('a worker that is frozen, or waits for a job from the store, is not free', () => {
  assert.deepEqual(counted([slot('live', { ...READY, isFrozen: true })]), [[[1, 0]], []]);
  assert.deepEqual(counted([slot('live', READY)], false), [[[1, 0]], []]);
});

const LEFT: readonly (readonly [what: string, slots: readonly Slot[], leftMs: number])[] = [
  ['without a slot', [], 1000],
  ['of a start that has taken 300 ms', [slot('live', LOADING)], 700],
  ['of a start that takes longer than expected', [slot('live', { ...LOADING, uptimeMs: 4000 })], 0],
  ['before a turn to start', [slot('waiting')], 1000],
  ['in a backoff', [slot('backoff', null, { untilMs: NOW_MS + 500 })], 1500],
  ['of the nearest of two', [slot('backoff', null, { untilMs: NOW_MS + 500 }), slot('live', LOADING)], 700],
];

for (const [what, slots, leftMs] of LEFT) {
  test(`the time left ${what}, if a start takes 1000 ms, is ${leftMs} ms`, () => {
    assert.equal(startLeftMs(slots, 1000, NOW_MS), leftMs);
  });
}
