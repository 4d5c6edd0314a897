/** Folders that another process removes, and those that it cannot remove. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { OwnFolder } from '../../../../../supervisor/store/archives/own-folder.js';
import { appFolder } from '../../../../worker/app-folder.js';

/** Empty folders in a folder, by name, each with a file. */
function folders(t: TestContext, names: readonly string[]): string[] {
  const files = names.map((name) => [`${name}/inner/file`, 'content'] as const);
  const folder = appFolder(t, Object.fromEntries(files));
  return names.map((name) => join(folder, name));
}

function ownFolder(problems: string[] = []): OwnFolder {
  return new OwnFolder((problem) => problems.push(problem));
}

test('folders that are removed at the same time are all gone afterwards', async (t) => {
  const problems: string[] = [];
  const paths = folders(t, ['a', 'b', 'c']);
  const removing = ownFolder(problems);
  await Promise.all([...paths, '/nowhere/at/all'].map((path) => removing.remove(path)));
  assert.deepEqual([paths.filter((path) => existsSync(path)), problems], [[], []]);
});

test('one process at a time removes them, beside this one', async (t) => {
  const [first = '', second = ''] = folders(t, ['first', 'second']);
  const removing = ownFolder();
  let isOver = false;
  void Promise.all([first, second].map((path) => removing.remove(path))).then(() => (isOver = true));
  let most = 0;
  while (!isOver) {
    await new Promise((resolve) => setTimeout(resolve, 1)); // timers run when the handle of an ended process is closed
    const processes = process.getActiveResourcesInfo().filter((what) => what === 'ProcessWrap');
    most = Math.max(most, processes.length);
  }
  assert.equal(most, 1);
});

test(
  'a folder that cannot be removed is reported with the reason',
  { skip: process.platform !== 'linux' },
  async () => {
    const problems: string[] = [];
    await ownFolder(problems).remove('/proc/self/task');
    assert.equal(problems.length, 1);
    assert.match(
      problems[0] ?? '',
      /^the unpacked files in \/proc\/self\/task could not be removed: E[A-Z]+/,
    );
  },
);

test("folders that are not removed yet when the server ends go with the server's folder", async (t) => {
  const problems: string[] = [];
  const own = ownFolder(problems);
  t.after(() => own.close());
  const path = own.open();
  for (const name of ['a', 'b']) {
    mkdirSync(join(path, name));
    writeFileSync(join(path, name, 'file'), '');
  }
  const removed = ['a', 'b'].map((name) => own.remove(join(path, name)));
  own.close();
  assert.ok(!existsSync(path));
  await Promise.all(removed);
  assert.deepEqual(problems, []);
});
