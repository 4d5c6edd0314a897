/** The short form of the chaos of jobs: three servers, one Redis, receivers of webhooks, and kills of each of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jobChaos } from '../helpers/job-chaos.js';
import { needs } from '../helpers/needs.js';

test(
  'three servers under load, killed and frozen, and Redis killed: each job ends once, and begins once',
  { skip: needs('redis-server'), timeout: 600_000 },
  async (t) => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    t.diagnostic(`seed ${seed}`);
    const harm = { worker: 3, front: 1, redis: 1, freeze: 1, receiver: 1 };
    const options = { jobs: 400, fronts: 3, seed, appendfsync: 'always', harm };
    const { breaches, states, webhooks } = await jobChaos({ ...options, log: (text) => t.diagnostic(text) });
    t.diagnostic(JSON.stringify({ states, webhooks }));
    assert.deepEqual(breaches, [], `seed ${seed}`);
  },
);
