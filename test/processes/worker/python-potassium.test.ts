/** Python's `potassium` under pytest, as tests of Potassium apps use it; and a Redis that apps of both languages share. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { Store } from '../../../index.js';
import { needs } from '../../helpers/needs.js';
import { ROOT } from '../../helpers/server.js';
import { RedisServer } from './api/store/redis-server.js';

const LIMIT = { timeout: 240_000 };
const TESTS = `${ROOT}test/python_pytest`;

/** Rejects with what pytest has printed if a test fails. */
async function pytest(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
  const all = ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', ...args];
  const variables = {
    ...process.env,
    PYTHONPATH: `${ROOT}worker/python`,
    PYTHONDONTWRITEBYTECODE: '1',
    ...env,
  };
  try {
    return (await promisify(execFile)('/usr/bin/python3', all, { env: variables })).stdout;
  } catch (failed) {
    throw new Error((failed as { stdout: string }).stdout, { cause: failed });
  }
}

test('the Potassium test cases pass', { ...LIMIT, skip: needs('pytest') }, async () => {
  const printed = await pytest([TESTS, '--ignore', `${TESTS}/test_store_redis.py`]);
  assert.match(printed, /^\d{2,} passed in/m);
});

test('the test that the docs show passes', { ...LIMIT, skip: needs('pytest') }, async (t) => {
  const page = readFileSync(`${ROOT}docs/from-potassium.md`, 'utf8');
  const [, shown = ''] = /```py\n(.*?)```/s.exec(page) ?? [];
  const folder = mkdtempSync(join(tmpdir(), 'banana-docs-'));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'test_docs.py'), shown);
  assert.match(await pytest([folder]), /^1 passed in/m);
});

test(
  'a Python app and a TypeScript app read each other’s values in one Redis',
  { ...LIMIT, skip: needs('pytest', 'python3-redis', 'redis-server') },
  async (t) => {
    const redis = await RedisServer.start();
    t.after(() => redis.down());
    const config = { host: '127.0.0.1', port: redis.port };
    const json = new Store({ backend: 'redis', config });
    const msgpack = new Store({ backend: 'redis', config: { ...config, encoding: 'msgpack' } });
    t.after(() => Promise.all([json.close(), msgpack.close()]));
    const value = { list: [1, 'é'], none: null };
    const bytes = { bytes: new Uint8Array([0, 255]) };
    await json.set('from typescript', value);
    await msgpack.set('bytes from typescript', bytes);
    await pytest([`${TESTS}/test_store_redis.py`], { REDIS_PORT: String(redis.port) });
    assert.deepEqual(await json.get('from python'), value);
    assert.deepEqual(
      Buffer.from((await msgpack.get<{ bytes: Uint8Array }>('bytes from python'))?.bytes ?? []),
      Buffer.from(bytes.bytes),
    );
  },
);
