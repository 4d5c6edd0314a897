/** A Redis whose memory is full refuses what needs more of it; what frees some goes on, so that it recovers by itself. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { needs } from '../../../../helpers/needs.js';
import { eventually } from '../../../../helpers/server.js';
import { StoreBench } from '../../../../supervisor/jobs/conformance.js';
import { RedisServer } from '../../../worker/api/store/redis-server.js';
import { openFront, type Front } from './fronts.js';

const OPTIONS = { skip: needs('redis-server'), timeout: 240_000 };
const LOCK_MS = 20_000;

async function open(
  t: TestContext,
  redis: RedisServer,
  retentionMs: number,
): Promise<Front & { bench: StoreBench }> {
  const opened = await openFront(redis.port, { limits: { retentionMs, maxBytes: 1e9 }, lockMs: LOCK_MS });
  t.after(() => opened.store.close());
  const bench = new StoreBench(opened.store);
  opened.store.listener = { ...opened.store.listener, onFailed: () => {} };
  return { ...opened, bench };
}

test(
  'a full Redis takes no job, stores outcomes, drops what is old, and is well again',
  OPTIONS,
  async (t) => {
    const redis = await RedisServer.start('--maxmemory-policy', 'noeviction');
    t.after(() => redis.down());
    const { store, link, bench } = await open(t, redis, 600_000);
    const running = await bench.accept();
    assert.deepEqual(await bench.begin('running'), [running]);
    for (let i = 0; i < 20; i += 1) {
      const id = await bench.accept({ body: '{}' });
      assert.deepEqual(await bench.begin(), [id]);
      await bench.answer(id, 'mark', 'x'.repeat(200_000));
    }
    await link.commands.configSet('maxmemory', '3mb');
    await assert.rejects(bench.accept(), /OOM/);
    await assert.rejects(store.probe(), /OOM/);
    assert.equal(await store.get(''), null, 'an answer proves no room');
    const [lock = ''] = await link.commands.keys('*:lock');
    await link.commands.pExpire(lock, 1); // its time passes while nothing can be written
    await eventually(
      async () => (await link.commands.pTTL(lock)) > LOCK_MS / 2,
      60_000,
      () => 'the lock is not set again',
    );
    const ended = await bench.answer(running, 'running', 'out');
    assert.equal(ended?.state, 'succeeded', 'its front has kept its lock, and its outcome is stored');
    await store.close();
    const later = await open(t, redis, 1); // for which the time of all that has ended is over
    let last = '';
    const isWell = async (): Promise<boolean> => {
      try {
        await later.bench.accept();
        return true;
      } catch (error) {
        last = String(error);
        return false;
      }
    };
    await eventually(isWell, 60_000, () => `${last}, ${later.link.problem}`);
    await later.store.probe();
  },
);
