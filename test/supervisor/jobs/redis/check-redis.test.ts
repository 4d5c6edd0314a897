/** The look at a Redis before jobs are kept in it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkRedis, Unusable } from '../../../../supervisor/jobs/redis/check-redis.js';
import type { RedisClient } from '../../../../supervisor/jobs/redis/load-packages.js';

const SAFE = { appendonly: 'yes', appendfsync: 'always', 'maxmemory-policy': 'noeviction' };

function redis(
  info: string,
  settings: Record<string, string> | Error = SAFE,
  keys: readonly string[] = [],
): RedisClient {
  const client = {
    exists: (key: string) => Promise.resolve(keys.includes(key) ? 1 : 0),
    info: () => Promise.resolve(`# Server\r\n${info.replaceAll(' ', '\r\n')}\r\n`),
    configGet: () => (settings instanceof Error ? Promise.reject(settings) : Promise.resolve(settings)),
  };
  return client as unknown as RedisClient;
}

test('the tested version with safe settings needs no warning', async () => {
  assert.deepEqual(await checkRedis(redis('redis_version:7.0.15 redis_mode:standalone')), []);
});

for (const [info, found] of [
  ['redis_version:6.2.14 redis_mode:standalone', 'Redis 6.2.14'],
  ['redis_version:7.2.4 redis_mode:standalone', 'Redis 7.2.4'],
  ['redis_version:7.0.15 server_name:valkey valkey_version:8.0.1 redis_mode:standalone', 'Valkey 8.0.1'],
  ['redis_version:70.1.0 redis_mode:standalone', 'Redis 70.1.0'],
] as const)
  test(`${info} is named as untested`, async () => {
    assert.deepEqual(await checkRedis(redis(info)), [
      `${found} is not tested with this server, Redis 7.0 is`,
    ]);
  });

for (const mode of ['cluster', 'sentinel'])
  test(`a ${mode} is refused by name`, async () => {
    await assert.rejects(checkRedis(redis(`redis_version:7.0.15 redis_mode:${mode}`)), (error) => {
      assert.ok(error instanceof Unusable);
      assert.equal(error.message, `it runs as a ${mode}; jobs need a standalone Redis`);
      return true;
    });
  });

test('the layout of an older version is refused', async () => {
  const old = redis('redis_version:7.0.15 redis_mode:standalone', SAFE, ['banana:jobs:order']);
  await assert.rejects(checkRedis(old), { message: /older version of this server.*give another database/ });
});

test('each setting that is not safe is named, and so is a CONFIG that is forbidden', async () => {
  const info = 'redis_version:7.0.15 redis_mode:standalone';
  const everysec = await checkRedis(redis(info, { ...SAFE, appendfsync: 'everysec' }));
  assert.match(everysec.join(), /^Redis must have appendfsync always\. A crash of Redis may lose/);
  const evicting = await checkRedis(redis(info, { ...SAFE, 'maxmemory-policy': 'allkeys-lru' }));
  assert.match(evicting.join(), /^Redis must have maxmemory-policy noeviction\. /);
  const forbidden = await checkRedis(redis(info, new Error("NOPERM this user can't run config|get")));
  assert.match(forbidden.join(), /cannot be read \(NOPERM .*appendonly yes, appendfsync always, maxmemory/);
});
