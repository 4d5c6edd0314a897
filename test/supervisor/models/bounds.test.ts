/** Numbers of workers: the own bounds of models that scale by themselves, and the defaults of every occasion. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { boundsFor, checkBounds, ownBounds, setBounds } from '../../../supervisor/models/bounds.js';
import { resolveOptions } from '../../../supervisor/options/resolve.js';

type Given = Readonly<Record<string, unknown>>;
type Bounds = readonly [min: number, max: number];

const OWN: readonly (readonly [given: Given, usual: number, bounds: Bounds | null])[] = [
  [{}, 2, null],
  [{ targetWait: '1s' }, 2, null],
  [{ workersPerGpu: 2 }, 4, null],
  [{ idleTimeout: '1s' }, 1, [0, 1]],
  [{ idleTimeout: '1s', workersPerGpu: 2 }, 4, [0, 4]],
  [{ minWorkers: 0 }, 1, [0, 1]],
  [{ minWorkers: 3 }, 1, [3, 3]],
  [{ maxWorkers: 4 }, 1, [1, 4]],
  [{ maxWorkers: 4, idleTimeout: '1s' }, 1, [1, 4]],
  [{ minWorkers: 0, maxWorkers: 4 }, 8, [0, 4]],
];

for (const [given, usual, bounds] of OWN) {
  test(`${JSON.stringify(given)}, where ${usual} would start, is ${bounds?.join(' to ') ?? 'a fixed number'}`, () => {
    const { options } = resolveOptions([{ values: given, where: (name) => name }]);
    const found = ownBounds(options, () => usual);
    assert.deepEqual(found === null ? null : [found.min, found.max], bounds);
  });
}

const NOTHING = {};
const OCCASIONS = ['start', 'program', 'registration', 'change', 'load'] as const;

/** The bounds of a model with own ones of 1 to 4, on every occasion. */
const OF_OWN: readonly (readonly [asked: { min?: number; max?: number }, bounds: Bounds])[] = [
  [NOTHING, [1, 4]],
  [{ min: 2 }, [2, 4]],
  [{ min: 6 }, [6, 6]],
  [{ min: 0 }, [0, 4]],
  [{ max: 8 }, [1, 8]],
  [{ max: 0 }, [0, 0]],
  [{ min: 0, max: 0 }, [0, 0]],
];

for (const [asked, bounds] of OF_OWN) {
  test(`a change to ${JSON.stringify(asked)} of a model with 1 to 4 leaves ${bounds.join(' to ')}`, () => {
    for (const occasion of OCCASIONS) {
      const facts = {
        own: { min: 1, max: 4 },
        set: { min: 9, max: 9 },
        usualCount: () => assert.fail('unused'),
      };
      const { min, max } = boundsFor(occasion, facts, asked);
      assert.deepEqual([min, max], bounds, occasion);
    }
  });
}

test('own bounds that contradict each other stay so, and are refused where they are checked', () => {
  const own = { min: 3, max: 1 };
  const facts = { own, set: null, usualCount: () => assert.fail('unused') };
  for (const occasion of OCCASIONS) assert.deepEqual(boundsFor(occasion, facts), own);
  assert.throws(() => checkBounds(own), { code: 'SERVE_CONFIG' });
});

type Row = readonly [
  occasion: (typeof OCCASIONS)[number],
  asked: { min?: number; max?: number },
  set: Bounds | null,
  usual: number,
  bounds: Bounds,
];

const FIXED: readonly Row[] = [
  ['start', NOTHING, null, 3, [3, 3]],
  ['start', NOTHING, [0, 2], 3, [0, 2]],
  ['start', NOTHING, [2, 5], 3, [2, 5]],

  ['program', NOTHING, null, 3, [3, 3]],
  ['program', { min: 0 }, null, 3, [0, 0]],
  ['program', { min: 5 }, null, 3, [5, 5]],
  ['program', { max: 0 }, null, 3, [0, 0]],
  ['program', { max: 2 }, null, 3, [2, 2]],
  ['program', { max: 5 }, null, 3, [3, 5]],
  ['program', { min: 1, max: 5 }, null, 3, [1, 5]],
  ['program', { min: 5, max: 1 }, null, 3, [5, 1]], // refused where it is checked

  ['registration', NOTHING, null, 0, [0, 0]],
  ['registration', NOTHING, null, 3, [3, 3]],
  ['registration', NOTHING, [0, 2], 3, [0, 2]],
  ['registration', { min: 0 }, [2, 5], 3, [0, 0]],
  ['registration', { min: 4 }, [2, 5], 3, [4, 4]],

  ['change', NOTHING, null, 3, [1, 1]],
  ['change', { min: 0 }, null, 3, [0, 0]],
  ['change', { min: 5 }, null, 3, [5, 5]],
  ['change', { max: 0 }, null, 3, [1, 0]], // refused where it is checked
  ['change', { max: 5 }, null, 3, [1, 5]],
  ['change', { min: 2, max: 5 }, null, 3, [2, 5]],

  ['load', NOTHING, null, 0, [1, 1]],
  ['load', NOTHING, null, 3, [3, 3]],
  ['load', NOTHING, [2, 5], 3, [2, 5]],
  ['load', NOTHING, [0, 5], 0, [1, 5]],
  ['load', NOTHING, [0, 0], 0, [1, 1]],
];

for (const [occasion, asked, set, usual, bounds] of FIXED) {
  const setText = set === null ? '' : `, set to ${set.join(' to ')}`;
  test(`${occasion} with ${JSON.stringify(asked)} of a fixed number${setText}, where ${usual} are usual, is ${bounds.join(' to ')}`, () => {
    const facts = {
      own: null,
      set: set === null ? null : { min: set[0], max: set[1] },
      usualCount: () => usual,
    };
    const { min, max } = boundsFor(occasion, facts, asked);
    assert.deepEqual([min, max], bounds);
  });
}

const SETTINGS: readonly (readonly [min: number | null, max: number | null, bounds: Bounds | null])[] = [
  [null, null, null],
  [0, null, [0, 0]],
  [2, null, [2, 2]],
  [null, 1, [1, 1]],
  [null, 5, [3, 5]],
  [2, 5, [2, 5]],
];

for (const [min, max, bounds] of SETTINGS) {
  test(`a setting of ${min} to ${max} where 3 would start is ${bounds?.join(' to ') ?? 'none'}`, () => {
    const source = { values: {}, where: (name: string) => name };
    const found = setBounds({ source, min, max }, 3);
    assert.deepEqual(found === null ? null : [found.min, found.max], bounds);
  });
}
