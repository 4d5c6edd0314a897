import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NewsReader } from '../../../../supervisor/jobs/redis/news-reader.js';
import type { RedisLink } from '../../../../supervisor/jobs/redis/redis-link.js';

test('what happens in the millisecond of the first look is news: XREAD answers what is after the id that it is given', () => {
  let command: readonly string[] = [];
  const link = {
    isReady: true,
    wait: (args: readonly string[]) => ((command = args), new Promise(() => {})),
  };
  const reader = new NewsReader(link as unknown as RedisLink, () => {});
  reader.start(['m'], 1_000.7);
  assert.deepEqual(command.slice(-4), ['banana:news', 'banana:m:events', '999-0', '999-0']);
});
