/** The start of a store whose Redis answers, but not as it should. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_LISTENER } from '../../../../../supervisor/jobs/job-store.js';
import { openRedisStore } from '../../../../../supervisor/jobs/redis/open-redis-store.js';
import { fakeRedis, type Answers } from './fake-redis.js';

const LIMITS = { retentionMs: 60_000, maxBytes: 1e8 };
const LIMIT = { timeout: 30_000 };

const LOADING = '-LOADING Redis is loading the dataset in memory';

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
