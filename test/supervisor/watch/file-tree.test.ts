import assert from 'node:assert/strict';
import { symlinkSync, utimesSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import {
  changedFiles,
  isAppFile,
  isIgnored,
  readTree,
  type FileTree,
} from '../../../supervisor/watch/file-tree.js';
import { APP_SOURCES } from '../../../supervisor/runtimes/index.js';
import { editedApp, type EditedApp } from '../../helpers/edited-app.js';

const NOTHING: FileTree = new Map();

function read(app: EditedApp, before = NOTHING): Promise<FileTree> {
  return readTree(app.folder, APP_SOURCES, before, () => {});
}

async function namesOf(t: TestContext, files: readonly string[]): Promise<string[]> {
  const app = editedApp(t, Object.fromEntries(files.map((name) => [name, name])));
  return [...(await read(app)).keys()].sort();
}

test('code and JSON at any depth belong to an app', async (t) => {
  const names = ['a.ts', 'b.mts', 'c.cts', 'd.tsx', 'e.js', 'f.mjs', 'g.cjs', 'h.jsx', 'i.json'];
  const files = [...names, ...names.map((name) => `lib/deep.er/${name}`)];
  assert.deepEqual(await namesOf(t, files), [...files].sort());
});

test('packages, outputs, dot files and data do not belong to an app', async (t) => {
  const others = [
    'node_modules/a/index.js',
    'lib/node_modules/a/index.js',
    'dist/app.js',
    'build/app.js',
    'out/app.js',
    'coverage/app.js',
    '.git/config.json',
    '.eslintrc.json',
    'banana.json',
    'weights.onnx',
    'app.ts~',
    'README.md',
    'ts',
  ];
  assert.deepEqual(await namesOf(t, ['app.ts', 'distance.ts', ...others]), ['app.ts', 'distance.ts']);
});

test('a path belongs to the app only if every folder on it does', () => {
  assert.equal(isIgnored('lib/node_modules/a.js', APP_SOURCES), true);
  assert.equal(isIgnored('env/lib/python3.11/site-packages/a/b.py', APP_SOURCES), true);
  assert.equal(isIgnored('venv/bin/a.py', APP_SOURCES), true);
  assert.equal(isIgnored('lib/__pycache__/a.py', APP_SOURCES), true);
  assert.equal(isIgnored('lib/.cache/a.js', APP_SOURCES), true);
  assert.equal(isIgnored('lib/a.js', APP_SOURCES), false);
  assert.equal(isAppFile('lib/a.js', APP_SOURCES), true);
  assert.equal(isAppFile('lib/a.png', APP_SOURCES), false);
});

test('changed, new and removed files are reported, files that were only saved are not', async (t) => {
  const app = editedApp(t, { 'same.ts': '1', 'changed.ts': '1', 'removed.ts': '1', 'lib/moved.ts': '1' });
  const before = await read(app);
  app.save('same.ts', '1');
  utimesSync(app.path('same.ts'), new Date(0), new Date(0));
  app.save('changed.ts', '2');
  app.remove('removed.ts');
  app.save('lib/moved.ts', '1');
  app.save('new.ts', '1');
  const after = await read(app, before);
  assert.deepEqual(changedFiles(before, after), ['changed.ts', 'new.ts', 'removed.ts']);
  assert.deepEqual(changedFiles(after, await read(app, after)), []);
});

test('a write that keeps size and mtime is noticed', async (t) => {
  const app = editedApp(t, { 'app.ts': '1' });
  utimesSync(app.path('app.ts'), new Date(0), new Date(0));
  const before = await read(app);
  app.save('app.ts', '2');
  utimesSync(app.path('app.ts'), new Date(0), new Date(0));
  assert.deepEqual(changedFiles(before, await read(app, before)), ['app.ts']);
});

test('a large file is compared by size and mtime, and not read', async (t) => {
  const large = 'x'.repeat(1024 * 1024 + 1);
  const app = editedApp(t, { 'large.json': large });
  const before = await read(app);
  app.save('large.json', large);
  utimesSync(app.path('large.json'), new Date(0), new Date(0));
  assert.deepEqual(changedFiles(before, await read(app, before)), ['large.json']);
});

test('a folder is reported before it is read, and files that disappear are left out', async (t) => {
  const app = editedApp(t, { 'app.ts': '1', 'lib/a.ts': '1', 'node_modules/b.ts': '1' });
  const folders: string[] = [];
  const tree = await readTree(app.folder, APP_SOURCES, NOTHING, (folder) => {
    folders.push(folder);
    if (folder === app.path('lib')) app.remove('lib');
  });
  assert.deepEqual(folders, [app.folder, app.path('lib')]);
  assert.deepEqual([...tree.keys()], ['app.ts']);
});

test('a link to a file is read as the file; a link to a folder is not followed', async (t) => {
  const app = editedApp(t, { 'lib/a.ts': '1' });
  symlinkSync(app.path('lib/a.ts'), app.path('link.ts'));
  symlinkSync(app.folder, app.path('lib/round'));
  symlinkSync(app.path('nothing.ts'), app.path('broken.ts'));
  assert.deepEqual([...(await read(app)).keys()].sort(), ['lib/a.ts', 'link.ts']);
});
