/** The start of a store whose Redis is not there, or does not answer as it should. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deferred } from '../../../../../supervisor/machine/deferred.js';
import { NO_LISTENER } from '../../../../../supervisor/jobs/job-store.js';
import { openJobStore } from '../../../../../supervisor/jobs/open-job-store.js';
import { openRedisStore } from '../../../../../supervisor/jobs/redis/open-redis-store.js';
import { fakeRedis, type Answers } from './fake-redis.js';

const LIMITS = { retentionMs: 60_000, maxBytes: 1e8 };
const LIMIT = { timeout: 60_000 };

const LOADING = '-LOADING Redis is loading the dataset in memory';

// The first test, because later ones have the packages already.
test('the time that this server takes to load its packages is not that of Redis', LIMIT, async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const place = { in: 'redis', url: 'redis://127.0.0.1:1' } as const;
  const opening = openJobStore({ place, retentionMs: null, maxBytes: null, cwd: '' });
  let isOver = false;
  void opening.catch(() => {}).finally(() => (isOver = true));
  for (; !isOver; await new Promise((resolve) => setImmediate(resolve))) t.mock.timers.tick(1000);
  await (await opening).close();
});

for (const [title, answer] of [
  ['reads its file', (name) => (name === 'INFO' ? info('standalone') : LOADING)],
  ['is held up by a script', () => '-BUSY Redis is busy running a script.'],
] as const satisfies readonly (readonly [string, Answers])[])
  test(`a Redis that ${title} is away, which ends no start`, LIMIT, async (t) => {
    const port = await fakeRedis(t, answer);
    const store = await openRedisStore(`redis://127.0.0.1:${port}`, LIMITS);
    t.after(() => store.close());
    const failed = new Promise<string>((resolve) => {
      store.listener = { ...NO_LISTENER, onFailed: resolve };
    });
    assert.match(await failed, /^Redis at 127\.0\.0\.1:\d+: (LOADING|BUSY) /);
    await assert.rejects(store.get('any'), /(LOADING|BUSY)/);
  });

test(
  'a Redis that reads its file is asked again on the same connection: who comes late finds its jobs lost',
  LIMIT,
  async (t) => {
    const asked: number[] = [];
    const again = deferred<void>();
    const port = await fakeRedis(t, (name, connection) => {
      if (name !== 'INFO') return LOADING;
      if (asked.push(connection) === 3) again.resolve();
      return info('standalone');
    });
    const store = await openRedisStore(`redis://127.0.0.1:${port}`, LIMITS);
    t.after(() => store.close());
    await again.promise;
    assert.equal(new Set(asked).size, 1, `INFO on the connections ${asked.join()}`);
  },
);

test('a Sentinel ends the start, by name', LIMIT, async (t) => {
  const port = await fakeRedis(t, (name) => (name === 'INFO' ? info('sentinel') : '+OK'));
  await assert.rejects(
    openRedisStore(`redis://127.0.0.1:${port}`, LIMITS),
    /it runs as a sentinel; jobs need a standalone Redis/,
  );
});

function info(mode: string): string {
  const text = `# Server\r\nredis_version:7.0.15\r\nredis_mode:${mode}\r\n`;
  return `$${text.length}\r\n${text}`;
}
