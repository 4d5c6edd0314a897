/** The division of a model's workers into those that take calls and those that stand by. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Crew } from '../../../supervisor/models/crew.js';
import type { Slot } from '../../../supervisor/slots/slot.js';

/** `-`: it has no worker; `x`: it is latched; `s`: its worker starts; `f`: it is frozen; `r`: it is ready; `o`: it is ready, with old code. */
function slotsOf(states: string, wanted?: number): { slots: Crew; become(next: string): boolean } {
  const workers = [...states].map((_, index) => ({ index, state: '', isFrozen: false, isOld: false }));
  const fakes: { state: { name: string }; worker: unknown; workers: unknown[] }[] = [];
  const devices = { giveBack() {}, noteStandbys() {} };
  const slots = new Crew(
    devices,
    (worker) => !(worker as unknown as { isOld: boolean }).isOld,
    (index) => {
      const fake = {
        index,
        isKept: true,
        state: { name: '' },
        failure: null,
        worker: null,
        workers: [],
        start() {},
      };
      fakes.push(fake);
      return fake as unknown as Slot;
    },
  );
  const become = (next: string): boolean => {
    for (const [i, letter] of [...next].entries()) {
      const worker = workers[i] as (typeof workers)[number];
      worker.state = 'rfo'.includes(letter) ? 'ready' : 'initializing';
      worker.isFrozen = letter === 'f';
      worker.isOld = letter === 'o';
      const has = letter !== '-' && letter !== 'x';
      const name = letter === 'x' ? 'latched' : has ? 'live' : 'waiting';
      Object.assign(fakes[i] as object, {
        state: { name },
        failure: letter === 'x' ? new Error('latched') : null,
        worker: has ? worker : null,
        workers: has ? [worker] : [],
      });
    }
    return slots.refresh();
  };
  slots.add([...states].map(() => ({ device: 'cpu', gpu: null, env: {} })));
  become(states);
  if (wanted !== undefined) slots.want(wanted);
  return { slots, become };
}

const indexes = (all: readonly { index: number }[]): string => all.map(({ index }) => index).join('');

const ROWS: readonly (readonly [
  what: string,
  states: string,
  wanted: number | undefined,
  callable: string,
  standbys: string,
])[] = [
  ['without a wanted number, all take calls', 'rrf', undefined, '012', ''],
  ['the ready ones of the lowest indexes take calls', 'rrr', 2, '01', '2'],
  ['a standby takes the place of one that starts', 'srr', 2, '12', '0'],
  ['a standby takes the place of one that died', '-rr', 2, '12', '0'],
  ['a standby takes the place of a latched one', 'xrr', 2, '12', '0'],
  ['a standby takes the place of a frozen one', 'frr', 2, '12', '0'],
  ['a frozen one takes calls rather than too few', 'frs', 2, '01', '2'],
  ['before it is ready, a standby is one of the others', 'rsx', 1, '0', '12'],
  ['one with old code takes no calls', 'orr', 1, '1', '02'],
];

for (const [what, states, wanted, callable, standbys] of ROWS) {
  test(`${what}: ${states}, ${wanted} wanted`, () => {
    const { slots } = slotsOf(states, wanted);
    assert.deepEqual([indexes(slots.callable), indexes(slots.standbys)], [callable, standbys]);
  });
}

test('a change says when one that stood by takes calls, and the lowest takes its place back', () => {
  const { slots, become } = slotsOf('rr', 1);
  assert.deepEqual([become('-r'), indexes(slots.ready), indexes(slots.holders)], [true, '1', '1']);
  assert.deepEqual([become('sr'), indexes(slots.ready)], [false, '1']);
  assert.deepEqual([become('rr'), indexes(slots.ready), indexes(slots.holders)], [false, '0', '01']);
});
