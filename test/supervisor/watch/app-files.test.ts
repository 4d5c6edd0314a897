import assert from 'node:assert/strict';
import { mkdirSync, renameSync, symlinkSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import { AppFiles, changeText } from '../../../supervisor/watch/app-files.js';
import { APP_SOURCES } from '../../../supervisor/runtimes/index.js';
import { editedApp, type EditedApp } from '../../helpers/edited-app.js';
import { eventually } from '../../helpers/server.js';

const LIMIT = { timeout: 60_000 };

interface Watched {
  readonly files: AppFiles;
  /** Changed files of each burst. */
  readonly reported: (readonly string[])[];
  untilReported(file: string): Promise<void>;
}

async function watched(t: TestContext, app: EditedApp, name = 'app.ts', isAlone = false): Promise<Watched> {
  const reported: (readonly string[])[] = [];
  const listener = {
    onChange: (changed: readonly string[]) => reported.push(changed),
    onProblem: (problem: string) => assert.fail(problem),
  };
  const files = new AppFiles(app.path(name), APP_SOURCES, listener, isAlone);
  t.after(() => files.close());
  await files.open();
  const untilReported = (file: string): Promise<void> =>
    eventually(
      () => reported.some((changed) => changed.includes(file)),
      60_000,
      () => JSON.stringify(reported),
    );
  return { files, reported, untilReported };
}

function hasWatches(): boolean {
  return process.getActiveResourcesInfo().includes('FSEventWrap');
}

function untilNoWatches(): Promise<void> {
  return eventually(
    () => !hasWatches(),
    60_000,
    () => 'a folder is still watched',
  );
}

test('a burst is reported once, with every changed file', LIMIT, async (t) => {
  const app = editedApp(t, { 'app.ts': '1', 'lib/a.ts': '1', 'lib/b.ts': '1' });
  const { reported, untilReported } = await watched(t, app);
  app.save('lib/b.ts', '2');
  app.save('app.ts', 'half');
  app.save('app.ts', '2');
  app.save('lib/a.ts', '1');
  await untilReported('app.ts');
  assert.deepEqual(reported, [['app.ts', 'lib/b.ts']]);
});

test('the app may be a folder instead of a file in it', LIMIT, async (t) => {
  const app = editedApp(t, { 'model/src/service.ts': '1', 'model/labels.json': '1', 'other.ts': '1' });
  const { reported, untilReported } = await watched(t, app, 'model');
  app.save('other.ts', '2');
  app.save('model/labels.json', '2');
  await untilReported('labels.json');
  assert.deepEqual(reported, [['labels.json']]);
});

test('a single watched file is reported, also when it returns; files beside it are not', LIMIT, async (t) => {
  const app = editedApp(t, { 'one.ts': '1', 'two.ts': '1', 'lib/three.ts': '1' });
  const one = await watched(t, app, 'one.ts', true);
  const two = await watched(t, app, 'two.ts', true);
  app.save('lib/three.ts', '2');
  app.save('two.ts', '2');
  await two.untilReported('two.ts');
  app.save('one.ts', '2');
  await one.untilReported('one.ts');
  assert.deepEqual([one.reported, two.reported], [[['one.ts']], [['two.ts']]]);
  app.remove('one.ts');
  app.save('one.ts', '3');
  await eventually(
    () => one.reported.length > 1,
    60_000,
    () => JSON.stringify(one.reported),
  );
});

test('a single file is watched with all files that it loads, even later ones', LIMIT, async (t) => {
  const app = editedApp(t, {
    'store/one.ts': 'import "./lib/a.js";',
    'store/lib/a.ts': 'export * from "../../shared/b"; require("./later.json");',
    'store/lib/other.ts': '1',
    'shared/b/index.mts': '1',
  });
  const { reported, untilReported } = await watched(t, app, 'store/one.ts', true);
  app.save('store/lib/other.ts', '2');
  app.save('shared/b/index.mts', '2');
  await untilReported('../shared/b/index.mts');
  app.save('store/lib/later.json', '{}');
  await untilReported('lib/later.json');
  app.save('store/one.ts', 'import "./lib/other";');
  await untilReported('one.ts');
  app.save('store/lib/other.ts', '3');
  await untilReported('lib/other.ts');
  assert.deepEqual(reported.slice(0, 2), [['../shared/b/index.mts'], ['lib/later.json']]);
});

test('a change that is undone within the burst is not reported', LIMIT, async (t) => {
  const app = editedApp(t, { 'app.ts': '1', 'last.ts': '1' });
  const { reported, untilReported } = await watched(t, app);
  app.save('app.ts', '2');
  app.save('app.ts', '1');
  app.save('last.ts', '2');
  await untilReported('last.ts');
  assert.deepEqual(reported, [['last.ts']]);
});

test('changes are reported even while a program never stops writing', LIMIT, async (t) => {
  const app = editedApp(t, { 'app.ts': '0' });
  const { reported } = await watched(t, app);
  let writes = 0;
  const writer = setInterval(() => app.save('app.ts', String((writes += 1))), 10);
  t.after(() => clearInterval(writer));
  await eventually(
    () => reported.length > 1,
    60_000,
    () => `${writes} writes`,
  );
});

test("the app's folder is still watched after it was moved away and created again", LIMIT, async (t) => {
  const app = editedApp(t, { 'dist/app.ts': '1' });
  const { reported, untilReported } = await watched(t, app, 'dist/app.ts');
  renameSync(app.path('dist'), app.path('elsewhere'));
  await untilReported('app.ts');
  mkdirSync(app.path('dist'));
  app.save('dist/app.ts', '2');
  await eventually(() => reported.length === 2, 60_000, String);
  app.save('dist/other.ts', '1');
  await untilReported('other.ts');
  assert.deepEqual(reported, [['app.ts'], ['app.ts'], ['other.ts']]);
});

test('an app that is a link is watched at its target', LIMIT, async (t) => {
  const app = editedApp(t, { 'code/app.ts': '1' });
  symlinkSync(app.path('code/app.ts'), app.path('app.ts'));
  const { untilReported } = await watched(t, app);
  app.save('code/app.ts', '2');
  await untilReported('app.ts');
});

test('close at any time leaves no watches', LIMIT, async (t) => {
  const app = editedApp(t, { 'app.ts': '1', 'lib/a.ts': '1' });
  await untilNoWatches(); // of the previous tests
  const { files } = await watched(t, app);
  assert.ok(hasWatches());
  files.close();
  await untilNoWatches();

  const opening = new AppFiles(app.path('app.ts'), APP_SOURCES, { onChange() {}, onProblem() {} });
  const opened = opening.open();
  opening.close();
  await opened;
  await untilNoWatches();
});

for (const [files, text] of [
  [['app.ts'], 'app.ts'],
  [['a.ts', 'b.ts', 'lib/c.ts'], 'a.ts, b.ts, lib/c.ts'],
  [['a.ts', 'b.ts', 'c.ts', 'd.ts', 'e.ts'], 'a.ts, b.ts, c.ts and 2 more'],
] as const) {
  test(`${files.length} files read: ${text}`, () => assert.equal(changeText(files), text));
}
