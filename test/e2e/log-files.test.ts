/** The files that lines of the log go to as well, by the names that Multi Model Server gave them. */
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { editedApp } from '../helpers/edited-app.js';
import { call, startServer, type StartOptions } from '../helpers/server.js';

const RUNS = { timeout: 240_000, concurrency: 2 };

const SERVICE = `
  console.log('loading');
  export const handle = (data) => {
    if (data === null) return null;
    console.error('handling');
    return data.map(() => 'ok');
  };`;

const STORE = ['--model-store', 'models', '--models', 'all', '--management-port', '0'];

/** Starts a server of one model, calls it, ends it; returns what stands in its files. */
async function filesAfterCall(
  options: Omit<StartOptions, 'cwd'> & { readonly cwd: string },
  folder: string,
): Promise<Record<string, string[]>> {
  const server = await startServer(null, options);
  await server.until(({ state }) => state === 'ready');
  assert.equal((await call(`${server.url}/predictions/cats`, '5')).status, 200);
  await server.untilPrinted('handling');
  await server.stop();
  const names = readdirSync(folder).sort();
  assert.deepEqual(names, ['access_log.log', 'mms_log.log', 'model_log.log']);
  return Object.fromEntries(
    names.map((name) => [name, readFileSync(join(folder, name), 'utf8').trimEnd().split('\n')]),
  );
}

describe('with LOG_LOCATION, a server of a model store', RUNS, () => {
  test('writes its lines into files as well, behind those of its last run', async (t) => {
    const { folder: cwd } = editedApp(t, { 'models/cats.mjs': SERVICE });
    const options = { t, cwd, args: STORE, env: { LOG_LOCATION: 'logs/here' } };
    const folder = join(cwd, 'logs/here');
    await filesAfterCall(options, folder);
    const {
      'access_log.log': access = [],
      'mms_log.log': own = [],
      'model_log.log': model = [],
    } = await filesAfterCall(options, folder);
    assert.equal(access.length, 2, 'a line for each call, without --access-log');
    for (const line of access)
      assert.match(line, /^\[\d{4}-\d\d-\d\dT[\d:.]+Z\] INFO: POST \/.*"model":"cats"/);
    const printed = /^\[\d{4}-\d\d-\d\dT[\d:.]+Z\] cats worker 0[^:]*: (loading|handling)$/;
    assert.deepEqual(
      model.map((line) => printed.exec(line)?.[1]),
      ['loading', 'handling', 'loading', 'handling'],
    );
    for (const line of model) assert.ok(own.includes(line), line);
    assert.ok(own.some((line) => line.includes('the management API is on')));
    assert.ok(own.every((line) => !line.includes('\x1b')));
  });

  test('writes JSON with --log-format json', async (t) => {
    const { folder: cwd } = editedApp(t, { 'models/cats.mjs': SERVICE });
    const args = [...STORE, '--log-format', 'json', '--log-location', 'logs'];
    const files = await filesAfterCall({ t, cwd, args }, join(cwd, 'logs'));
    const records = (files['model_log.log'] ?? []).map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.deepEqual(
      records.map(({ model, worker, stream, msg }) => [model, worker, stream, msg]),
      [
        ['cats', 0, 'stdout', 'loading'],
        ['cats', 0, 'stderr', 'handling'],
      ],
    );
    for (const line of files['mms_log.log'] ?? []) assert.doesNotThrow(() => JSON.parse(line), line);
    assert.equal((JSON.parse(files['access_log.log']?.[0] ?? '') as { model: string }).model, 'cats');
  });

  test('continues to serve if they cannot be written, and reports it once for each', async (t) => {
    const { folder: cwd } = editedApp(t, { 'models/cats.mjs': SERVICE, logs: 'a file' });
    const server = await startServer(null, { t, cwd, args: STORE, env: { LOG_LOCATION: 'logs' } });
    await server.until(({ state }) => state === 'ready');
    for (let i = 0; i < 3; i += 1)
      assert.equal((await call(`${server.url}/predictions/cats`, '5')).status, 200);
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    const lost = server
      .stderr()
      .matchAll(/lines are lost because \S*?(\w+\.log) cannot be written: ENOTDIR/g);
    assert.deepEqual(Array.from(lost, ([, file]) => file).sort(), [
      'access_log.log',
      'mms_log.log',
      'model_log.log',
    ]);
  });
});

test('without a model store, LOG_LOCATION is ignored', RUNS, async (t) => {
  const { folder: cwd } = editedApp(t, { 'app.mjs': 'export const inference = () => 1;' });
  const server = await startServer('./app.mjs', { t, cwd, env: { LOG_LOCATION: 'logs' } });
  await server.until(({ state }) => state === 'ready');
  await server.stop();
  assert.deepEqual(
    readdirSync(cwd).filter((name) => name === 'logs'),
    [],
  );
});
