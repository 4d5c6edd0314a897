/** The project that `banana-serve new` writes: its package, and what may be in its way. */
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { newProject } from '../../../supervisor/new/new-project.js';
import { ROOT } from '../../helpers/server.js';
import { appFolder } from '../../worker/app-folder.js';

test('the package of a new project has the name of its folder, and asks for a tarball of this version', (t) => {
  const cwd = appFolder(t, {});
  newProject('Ünsere KI 2', cwd, 'typescript');
  const read = (path: string): Record<string, unknown> =>
    JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
  const { name, type, dependencies } = read(join(cwd, 'Ünsere KI 2/package.json'));
  const { version, devDependencies } = read(`${ROOT}package.json`) as {
    version: string;
    devDependencies: Record<string, string>;
  };
  const tarball = `file:banana-serve-${version}.tgz`;
  assert.deepEqual([name, type], ['nsere-ki-2', 'module']);
  assert.deepEqual(dependencies, { 'banana-serve': tarball, zod: devDependencies['zod'] });
});

test('new from a clone prints how to pack the clone', (t) => {
  const printed = newProject('mine', appFolder(t, {}), 'typescript');
  const [, packed = ''] =
    /\n {2}npm pack --silent --ignore-scripts (.+)\n {2}npm install\n/.exec(printed) ?? [];
  assert.equal(packed.replaceAll('"', ''), ROOT);
});

describe('new names the file or folder in its way, and writes nothing', () => {
  test('a file of the project', (t) => {
    const cwd = appFolder(t, { 'taken/app.ts': 'mine' });
    assert.throws(() => newProject('taken', cwd, 'typescript'), {
      code: 'SERVE_CONFIG',
      message: 'taken: app.ts exists already. Choose another folder; nothing was written.',
    });
    assert.deepEqual(readdirSync(join(cwd, 'taken')), ['app.ts']);
  });

  test('a file where the folder should be', (t) => {
    const cwd = appFolder(t, { file: '' });
    assert.throws(() => newProject('file', cwd, 'typescript'), {
      code: 'SERVE_CONFIG',
      message: 'file is a file. Choose another folder.',
    });
  });
});
