/** A Redis that is away, stuck, back again or unfriendly. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Store } from '../../../../../index.js';
import { addressOf } from '../../../../../worker/api/store/config.js';
import { RedisBackend } from '../../../../../worker/api/store/redis.js';
import { needs } from '../../../../helpers/needs.js';
import { holdPort } from '../../../../helpers/held-port.js';
import { eventually } from '../../../../helpers/server.js';
import { RedisServer } from './redis-server.js';

const OPTIONS = { skip: needs('redis-server') };

function storeAt(t: { after(undo: () => Promise<void>): void }, config: object): Store {
  const store = new Store({ backend: 'redis', config: { host: '127.0.0.1', ...config } });
  t.after(() => store.close());
  return store;
}

async function startRedis(
  t: { after(undo: () => Promise<void>): void },
  ...args: string[]
): Promise<RedisServer> {
  const redis = await RedisServer.start(...args);
  t.after(() => redis.down());
  return redis;
}

test('calls to a Redis that is not there name host and port', async (t) => {
  const port = await holdPort();
  const store = storeAt(t, { port, password: 'hunter2' });
  const expected = { message: `Redis at 127.0.0.1:${port} cannot be reached: ECONNREFUSED` };
  await assert.rejects(store.get('key'), expected);
  await assert.rejects(store.set('key', 'value'), expected);
  for (const { status } of await Promise.allSettled(Array.from({ length: 50 }, () => store.get('key')))) {
    assert.equal(status, 'rejected');
  }
});

test('a call after the Redis is back works, without a failed one in between', OPTIONS, async (t) => {
  const redis = await startRedis(t);
  const store = storeAt(t, { port: redis.port });
  await store.set('key', 'value');
  for (let round = 0; round < 3; round += 1) {
    await redis.down();
    await assert.rejects(store.get('key'), /cannot be reached: ECONNREFUSED/);
    await redis.up();
    assert.equal(await store.get('key'), null);
    await store.set('key', round);
    await redis.down();
    await redis.up();
    assert.equal(await store.get('key'), null, 'the connection that died with the old one is replaced');
  }
});

test('a Redis that does not answer costs a call its limit, then works again', OPTIONS, async (t) => {
  const redis = await startRedis(t);
  const address = addressOf({ host: '127.0.0.1', port: redis.port });
  const backend = new RedisBackend(address, 1500);
  t.after(() => backend.close());
  /** On a busy machine a call may need longer than its limit though the Redis answers. */
  const soon = async <T>(call: () => Promise<T>): Promise<T> => {
    const made: T[] = [];
    const make = async (): Promise<boolean> => {
      await call().then(
        (value) => made.push(value),
        () => {},
      );
      return made.length > 0;
    };
    await eventually(make, 60_000, () => 'the Redis does not answer');
    return made[0] as T;
  };
  await soon(() => backend.set('key', Buffer.from('value'), null));
  redis.signal('SIGSTOP');
  const message = `Redis at 127.0.0.1:${redis.port} did not answer within 1500 ms.`;
  await assert.rejects(backend.get('key'), { message });
  await assert.rejects(backend.get('key'), { message }, 'on a new connection, too');
  redis.signal('SIGCONT');
  assert.deepEqual(await soon(() => backend.get('key')), Buffer.from('value'));
});

test(
  'a wrong password is refused without being repeated; the right one works, in a url too',
  OPTIONS,
  async (t) => {
    const redis = await startRedis(t, '--requirepass', 'right');
    for (const config of [{ password: 'hunter2' }, { username: 'hunter2', password: 'hunter2' }, {}]) {
      await assert.rejects(storeAt(t, { port: redis.port, ...config }).get('key'), (error: Error) => {
        assert.match(error.message, /^Redis at 127\.0\.0\.1:\d+ refused: (WRONGPASS|NOAUTH) /);
        assert.doesNotMatch(`${error.stack}${String(error.cause)}`, /hunter2/);
        return true;
      });
    }
    await storeAt(t, { port: redis.port, password: 'right' }).set('key', 'value');
    const byUrl = new Store({
      backend: 'redis',
      config: { url: `redis://default:right@127.0.0.1:${redis.port}/0` },
    });
    t.after(() => byUrl.close());
    assert.equal(await byUrl.get('key'), 'value');
  },
);

test('a refusal quotes nothing of the value', OPTIONS, async (t) => {
  const redis = await startRedis(t, '--rename-command', 'SET', '');
  const store = storeAt(t, { port: redis.port });
  await assert.rejects(store.set('key', 'hunter2'), (error: Error) => {
    assert.match(error.message, /refused: ERR unknown command/);
    assert.doesNotMatch(`${error.stack}${String(error.cause)}`, /hunter2/);
    return true;
  });
  assert.equal(await store.get('key'), null, 'the connection lives on');
});

test('values are what other programs write and read: plain JSON under the plain key', OPTIONS, async (t) => {
  const redis = await startRedis(t);
  const store = storeAt(t, { port: redis.port });
  const { createClient } = await import('redis');
  const other = createClient({ socket: { host: '127.0.0.1', port: redis.port } });
  other.on('error', () => {}); // its Redis ends before it does
  await other.connect();
  t.after(() => other.destroy());
  await store.set('ours', { a: [1] });
  assert.equal(await other.get('ours'), '{"a":[1]}');
  const seconds = await other.ttl('ours');
  assert.ok(seconds > 540 && seconds <= 600, `ten minutes unless told otherwise, not ${seconds} s`);
  await store.set('ours', 1, null);
  assert.equal(await other.ttl('ours'), -1);
  await other.set('theirs', '{"b": 2}');
  assert.deepEqual(await store.get('theirs'), { b: 2 });
});
