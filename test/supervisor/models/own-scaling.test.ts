/** The bounds of models that scale by themselves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { completed, ownBounds } from '../../../supervisor/models/own-scaling.js';
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

const ASKED: readonly (readonly [asked: { min?: number; max?: number }, bounds: Bounds])[] = [
  [{}, [1, 4]],
  [{ min: 2 }, [2, 4]],
  [{ min: 6 }, [6, 6]],
  [{ min: 0 }, [0, 4]],
  [{ max: 8 }, [1, 8]],
  [{ max: 0 }, [0, 0]],
  [{ min: 0, max: 0 }, [0, 0]],
];

for (const [asked, bounds] of ASKED) {
  test(`a change to ${JSON.stringify(asked)} of a model with 1 to 4 leaves ${bounds.join(' to ')}`, () => {
    const { min, max } = completed(asked, { min: 1, max: 4 });
    assert.deepEqual([min, max], bounds);
  });
}
