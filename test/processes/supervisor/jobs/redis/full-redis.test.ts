/** A Redis whose memory is full refuses what needs more of it; what frees some goes on, so that it recovers by itself. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { needs } from '../../../../helpers/needs.js';
import { eventually } from '../../../../helpers/server.js';
import { StoreBench } from '../../../../supervisor/jobs/conformance.js';
import { RedisServer } from '../../../worker/api/store/redis-server.js';
import { openFront } from './fronts.js';

const OPTIONS = { skip: needs('redis-server'), timeout: 240_000 };

test(
  'a full Redis takes no job, stores outcomes, drops what is old, and is well again',
  OPTIONS,
  async (t) => {
    const redis = await RedisServer.start('--maxmemory-policy', 'noeviction');
    t.after(() => redis.down());
    const limits = { retentionMs: 8000, maxBytes: 1e9 };
    const { store, link } = await openFront(redis.port, { limits, lockMs: 1000 });
    t.after(() => store.close());
    const bench = new StoreBench(store);
    store.listener = { ...store.listener, onFailed: () => {} };
    const running = await bench.accept();
    await bench.begin('running');
    for (let i = 0; i < 20; i += 1) {
      const id = await bench.accept({ body: '{}' });
      await bench.begin();
      await bench.answer(id, 'mark', 'x'.repeat(200_000));
    }
    await link.commands.configSet('maxmemory', '3mb');
    await assert.rejects(bench.accept(), /OOM/);
    await assert.rejects(store.probe(), /OOM/);
    assert.equal(await store.get(''), null, 'an answer proves no room');
    await new Promise((resolve) => setTimeout(resolve, 2500)); // longer than the lock of the one that runs
    const ended = await bench.answer(running, 'running', 'out');
    assert.equal(ended?.state, 'succeeded', 'its front has kept its lock, and its outcome is stored');
    let last = '';
    const isWell = async (): Promise<boolean> => {
      try {
        await bench.accept();
        return true;
      } catch (error) {
        last = String(error);
        return false;
      }
    };
    await eventually(isWell, 60_000, () => `${last}, ${link.problem}`);
    await store.probe();
  },
);
