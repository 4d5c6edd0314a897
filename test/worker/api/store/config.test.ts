import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RedisConfig, S3Config, Store, type StoreOptions } from '../../../../index.js';
import { addressOf } from '../../../../worker/api/store/config.js';

const HOST = { host: 'redis.example' };
const REDIS = (config: unknown): unknown => ({ backend: 'redis', config });

const MISTAKES: readonly [options: unknown, message: RegExp][] = [
  [undefined, /takes \{ backend, config \}/],
  [{}, /must be 'memory', 'local' or 'redis', not undefined/],
  [{ backend: 'postgres' }, /must be 'memory', 'local' or 'redis', not "postgres"/],
  [
    { backend: 's3', config: new S3Config({ awsAccessKeyId: 'a', awsSecretAccessKey: 'b', bucket: 'c' }) },
    /'s3' is not supported yet/,
  ],
  [{ backend: 'memory', config: [] }, /config of a memory store must be an object with encoding/],
  [{ backend: 'local', config: { file: 'x' } }, /an object with path, encoding; "file" is not one of them/],
  [{ backend: 'local', config: { path: 5 } }, /path of a store must be a non-empty string/],
  [{ backend: 'local', config: { encoding: 'pickle' } }, /Use 'msgpack'/],
  [{ backend: 'local', config: { encoding: 'xml' } }, /must be 'json' or 'msgpack', not "xml"/],
  [
    REDIS(undefined),
    /config of a redis store must be an object with host, port, username, password, db, url/,
  ],
  [REDIS('localhost'), /must be an object with host/],
  [REDIS({}), /needs host \(and port\), or url/],
  [REDIS({ ...HOST, hots: 1 }), /"hots" is not one of them/],
  [REDIS({ ...HOST, port: 0 }), /port .* from 1 to 65535/],
  [REDIS({ ...HOST, port: '63x' }), /port .* from 1 to 65535/],
  [REDIS({ ...HOST, db: -1 }), /db .* whole number/],
  [REDIS({ ...HOST, password: 5 }), /password of a store must be a non-empty string/],
  [REDIS({ ...HOST, url: 'redis://a' }), /both url and host/],
  [REDIS({ url: 'http://user:hunter2@a' }), /must be redis:\/\//],
  [REDIS({ url: 'redis://user:hunter2@a b' }), /must be redis:\/\//],
  [REDIS({ url: 'redis://user:hunter2%@a' }), /%25/],
  [REDIS({ url: 'redis://a/x' }), /db .* whole number/],
];

for (const [options, message] of MISTAKES) {
  test(`new Store refuses options with the error ${message.source}`, () => {
    assert.throws(
      () => new Store(options as StoreOptions),
      (error: Error) => {
        assert.ok(error instanceof TypeError);
        assert.match(error.message, message);
        assert.doesNotMatch(`${error.stack}${String(error.cause)}`, /hunter2/);
        return true;
      },
    );
  });
}

test('host and port mean the same as url', () => {
  const address = { host: 'a', port: 7, username: 'u', password: 'p@', db: 3, tls: false };
  const fields = { host: 'a', port: '7', username: 'u', password: 'p@', db: 3 };
  assert.deepEqual(addressOf(fields), address);
  assert.deepEqual(addressOf({ ...new RedisConfig(fields) }), address);
  assert.deepEqual(addressOf({ url: 'redis://u:p%40@a:7/3' }), address);
});

test('a url alone may leave out all but the host', () => {
  assert.deepEqual(addressOf({ url: 'rediss://[::1]' }), {
    host: '::1',
    port: 6379,
    username: undefined,
    password: undefined,
    db: 0,
    tls: true,
  });
});
