/** The short form of the chaos of functions: `npm run bench -- function-chaos` is the long one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { functionChaos } from '../helpers/function-chaos.js';

test(
  'functions, while workers and programs are killed: each call settles once, none runs twice, no worker is left',
  { timeout: 240_000 },
  async (t) => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const { breaches, ...rest } = await functionChaos({
      hosts: 2,
      callsPerHost: 150,
      killsPerHost: 5,
      seed,
      signal: t.signal,
    });
    t.diagnostic(`seed ${seed}: ${JSON.stringify(rest)}`);
    assert.deepEqual(breaches, [], `seed ${seed}`);
  },
);
