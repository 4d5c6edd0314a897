/** The promises of every backend, with both encodings; Redis is a real one. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { Store } from '../../../../../index.js';
import type { StoreOptions } from '../../../../../worker/api/store/config.js';
import { needs } from '../../../../helpers/needs.js';
import { eventually } from '../../../../helpers/server.js';
import { RedisServer } from './redis-server.js';

const NO_REDIS = needs('redis-server');

let redis: RedisServer;
let folder: string;
before(async () => {
  if (NO_REDIS === false) redis = await RedisServer.start();
  folder = mkdtempSync(join(tmpdir(), 'banana-store-'));
});
after(async () => {
  if (NO_REDIS === false) await redis.down();
  rmSync(folder, { recursive: true, force: true });
});

type EncodingName = 'json' | 'msgpack';

const BACKENDS: Record<string, (encoding: EncodingName) => StoreOptions> = {
  memory: (encoding) => ({ backend: 'memory', config: { encoding } }),
  local: (encoding) => ({
    backend: 'local',
    config: { encoding, path: join(folder, `${encoding}.sqlite3`) },
  }),
  redis: (encoding) => ({
    backend: 'redis',
    config: { encoding, host: '127.0.0.1', port: String(redis.port), db: encoding === 'json' ? 0 : 1 },
  }),
};

const VALUES: readonly unknown[] = [
  null,
  false,
  0,
  -1.5,
  '',
  'h\u00e9llo \u{1f34c}',
  [],
  {},
  { deep: [{ list: [1, 'two', null, true] }] },
  'x'.repeat(1_000_000),
];

for (const [backend, optionsFor] of Object.entries(BACKENDS)) {
  for (const encoding of ['json', 'msgpack'] as const) {
    const skip = backend === 'redis' && NO_REDIS;
    describe(`${backend}, ${encoding}`, { skip }, () => suite(() => optionsFor(encoding), encoding));
  }
}

function untilGone(store: Store, key: string): Promise<void> {
  return eventually(
    async () => (await store.get(key)) === null,
    60_000,
    () => 'the value did not expire',
  );
}

function suite(options: () => StoreOptions, encoding: EncodingName): void {
  let store: Store;
  let key: string;
  let count = 0;
  beforeEach(() => {
    store = new Store(options());
    key = `key ${(count += 1)}`;
  });
  afterEach(() => store.close());

  test('a missing key is null, has none and deletes nothing', async () => {
    assert.equal(await store.get(key), null);
    assert.equal(await store.has(key), false);
    assert.equal(await store.delete(key), false);
  });

  test('a value that was set is got with its type', async () => {
    for (const value of VALUES) {
      await store.set(key, value);
      assert.deepEqual(await store.get(key), value);
      assert.equal(await store.has(key), true);
    }
  });

  test('a value is a copy, going in and coming out', async () => {
    const value = { list: [1] };
    await store.set(key, value);
    value.list.push(2);
    (await store.get<typeof value>(key))?.list.push(3);
    assert.deepEqual(await store.get(key), { list: [1] });
  });

  test('bytes stay bytes in msgpack, and are a list of numbers in json', async () => {
    await store.set(key, { bytes: new Uint8Array([0, 255]), floats: new Float32Array([0.5]) });
    const bytes = encoding === 'msgpack' ? Buffer.of(0, 255) : [0, 255];
    assert.deepEqual(await store.get(key), { bytes, floats: [0.5] });
  });

  test('a deleted value is gone', async () => {
    await store.set(key, 'value', null);
    assert.equal(await store.delete(key), true);
    assert.equal(await store.get(key), null);
    assert.equal(await store.has(key), false);
    assert.equal(await store.delete(key), false);
  });

  test('an expired value is gone for get, has and delete', async () => {
    const setAtMs = Date.now();
    await store.set(key, 'value', 0.3);
    const held = await store.get(key);
    // On a machine that stood still meanwhile, there is nothing to see.
    if (Date.now() - setAtMs < 300) assert.equal(held, 'value');
    await untilGone(store, key);
    assert.ok(Date.now() - setAtMs >= 299, 'not before its time');
    assert.equal(await store.has(key), false);
    assert.equal(await store.delete(key), false);
  });

  test('setting anew replaces the value and its time', async () => {
    const other = `${key}, other`;
    await store.set(key, 'brief', 0.05);
    await store.set(key, 'lasting', null);
    await store.set(other, 'lasting', null);
    await store.set(other, 'brief', { ttl: 0.05 });
    await untilGone(store, other);
    assert.equal(await store.get(key), 'lasting');
    await store.set(key, 'lasting', { ttl: 60 });
    assert.equal(await store.get(key), 'lasting');
  });

  test('keys of any length and script are distinct', async () => {
    const keys = [
      'a',
      'A',
      'a ',
      'é',
      'e\u0301',
      'a\0b',
      'a\0c',
      '🍌',
      'k'.repeat(1024),
      'k'.repeat(1025),
      'k'.repeat(100_000),
    ];
    await Promise.all(keys.map((each, i) => store.set(each, i)));
    assert.deepEqual(await Promise.all(keys.map((each) => store.get(each))), [...keys.keys()]);
  });

  test('wrong keys, values and times are refused by name', async () => {
    const self: Record<string, unknown> = { secret: 'hunter2' };
    self['self'] = self;
    for (const wrong of ['', 5, null, undefined, '\ud800']) {
      await assert.rejects(store.get(wrong as string), /^TypeError: A key must be/);
    }
    for (const ttl of [0, -1, NaN, Infinity, 1e11, '60', { ttl: 0 }]) {
      await assert.rejects(
        store.set(key, 1, ttl as number),
        /^TypeError: ttl must be a number of seconds above 0/,
      );
    }
    for (const value of [undefined, () => 1, Symbol('hunter2')]) {
      await assert.rejects(store.set(key, value), /^TypeError: A store holds data/);
    }
    for (const value of [self, { later: Promise.resolve(1) }, { big: 2n ** 70n }]) {
      await assert.rejects(store.set(key, value), (error: Error) => {
        assert.match(String(error), /^TypeError: The value cannot be stored as/);
        assert.doesNotMatch(String(error), /hunter2|secret/);
        return true;
      });
    }
    assert.equal(await store.has(key), false);
  });

  test('two stores of the same options see the same values, except in memory', async () => {
    const other = new Store(options());
    await store.set(key, 'shared');
    assert.equal(await other.get(key), options().backend === 'memory' ? null : 'shared');
    await other.close();
    assert.equal(await store.get(key), 'shared', 'the end of one is not the end of the other');
  });

  test('close lets running calls end and refuses later ones', async () => {
    const running = [store.set(key, 1), store.get(key)];
    await store.close();
    await Promise.all(running);
    await assert.rejects(store.get(key), /^Error: The store is closed\.$/);
    await store.close();
  });
}

test('a value of another encoding is an error that quotes nothing of it', { skip: NO_REDIS }, async () => {
  const config = { host: '127.0.0.1', port: redis.port, db: 2 };
  const [json, msgpack] = [
    new Store({ backend: 'redis', config }),
    new Store({ backend: 'redis', config: { ...config, encoding: 'msgpack' } }),
  ];
  await msgpack.set('key', { secret: 'hunter2' });
  await assert.rejects(json.get('key'), (error: Error) => {
    assert.match(error.message, /^The stored value is not json/);
    assert.doesNotMatch(`${error.stack}${String(error.cause)}`, /hunter2|secret/);
    return true;
  });
  await Promise.all([json.close(), msgpack.close()]);
});
