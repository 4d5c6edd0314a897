/** A store keeps no process alive, closed or not, and is loaded only when used. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { needs } from '../../../../helpers/needs.js';
import { ROOT } from '../../../../helpers/server.js';
import { runProgram } from './programs.js';
import { RedisServer } from './redis-server.js';
import { scratchFolder } from './scratch-folder.js';

const USE = `
  const store = new Store(options);
  await store.set('key', 'value');
  if (await store.get('key') !== 'value') throw new Error('no value');
`;

for (const backend of ['memory', 'local', 'redis']) {
  const skip = backend === 'redis' && needs('redis-server');
  test(
    `a process ends by itself with a ${backend} store left open, and with a closed one`,
    { skip },
    async (t) => {
      const redis = backend === 'redis' ? await RedisServer.start() : null;
      t.after(() => redis?.down());
      const configs: Record<string, unknown> = {
        local: { path: join(scratchFolder(t), 'store.sqlite3') },
        redis: { host: '127.0.0.1', port: redis?.port },
      };
      const options = { backend, config: configs[backend] };
      for (const end of ['', 'await store.close();']) {
        const program = runProgram(t, `${USE} ${end} say('used')`, options);
        assert.equal(await program.line(), 'used');
        assert.deepEqual(await program.ended, { code: 0, signal: null });
      }
    },
  );
}

test('banana-serve without its optional packages imports, keeps values in memory, and names the package to install', async (t) => {
  const folder = scratchFolder(t);
  mkdirSync(join(folder, 'dist'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  for (const part of ['index.js', 'potassium.js', 'mms.js', 'start.js', 'protocol', 'worker']) {
    cpSync(join(ROOT, 'dist', part), join(folder, 'dist', part), { recursive: true });
  }
  const program = `
    import { Store } from './dist/index.js';
    const store = new Store({ backend: 'memory' });
    await store.set('key', { a: 1 });
    const said = [await store.get('key')];
    for (const options of [{ backend: 'local' }, { backend: 'redis', config: { host: 'localhost' } }]) {
      said.push(await new Store(options).get('key').catch((error) => error.message));
    }
    console.log(JSON.stringify(said));
  `;
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program], { cwd: folder });
  const needs = (name: string): string =>
    `This store needs the package ${name}, which cannot be loaded (ERR_MODULE_NOT_FOUND). Run: npm install ${name}`;
  assert.deepEqual(JSON.parse(stdout), [{ a: 1 }, needs('@photostructure/sqlite'), needs('redis')]);
});
