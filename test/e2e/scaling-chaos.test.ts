/** The short form of the chaos of scaling: `npm run bench -- scaling-chaos` is the long one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scalingChaos } from '../helpers/scaling-chaos.js';

test(
  'a model that scales, under waves of calls, kills, freezes, saves and new bounds: each call is answered, none runs twice',
  { timeout: 240_000 },
  async (t) => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const { breaches, ...rest } = await scalingChaos({ calls: 200, seed, signal: t.signal });
    t.diagnostic(`seed ${seed}: ${JSON.stringify(rest)}`);
    assert.deepEqual(breaches, [], `seed ${seed}`);
  },
);
