/** docs/models.md: its program is run, its config file is served, its commands are taken. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { startHere } from '../helpers/here.js';
import { ROOT, call } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };
const PAGE = readFileSync(`${ROOT}docs/models.md`, 'utf8');

/** A folder with apps at these paths, each of which answers with its path. */
function project(t: TestContext, apps: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'banana-models-'));
  t.after(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(ROOT, join(folder, 'node_modules/banana-serve'));
  for (const app of apps) {
    mkdirSync(dirname(join(folder, app)), { recursive: true });
    writeFileSync(join(folder, app), `export const inference = () => ${JSON.stringify(app)};\n`);
  }
  return folder;
}

function block(language: string): string {
  const [, text] = new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(PAGE) ?? [];
  assert.ok(text !== undefined, `the page has a block of ${language}`);
  return text;
}

test('the program on the page prints the lines of its comments', LIMIT, async (t) => {
  const program = block('ts');
  const folder = project(t, ['words.mjs', 'digits.mjs']);
  writeFileSync(join(folder, 'program.mjs'), program);
  const { stdout } = await promisify(execFile)(process.execPath, ['program.mjs'], { cwd: folder });
  const promised = [...program.matchAll(/\/\/ (1 done 2|\w+ \d ready)$/gm)].map(([, line]) => line);
  assert.equal(promised.length, 3);
  assert.deepEqual(stdout.trimEnd().split('\n'), promised);
});

test('the config file on the page serves three models', LIMIT, async (t) => {
  const folder = project(t, ['app.ts', 'words.ts', 'digits/app.ts']);
  writeFileSync(join(folder, 'banana.json'), block('json'));
  const server = await startHere(null, { t, cwd: folder });
  await server.until(({ models }) =>
    models.every(({ workers }) => workers.every(({ state }) => state === 'idle')),
  );
  for (const [path, app] of [
    ['/', 'app.ts'],
    ['/models/main/', 'app.ts'],
    ['/models/words/', 'words.ts'],
    ['/models/digits/', 'digits/app.ts'],
  ] as const)
    assert.equal((await call(`${server.url}${path}`, '{}')).json(), app);
  const { models } = await server.status();
  assert.deepEqual(
    models.map(({ name, workers }) => [name, workers.length]),
    [
      ['main', 1],
      ['words', 1],
      ['digits', 4],
    ],
  );
  await server.stop();
});

test('the commands on the page start the models that they name', LIMIT, async (t) => {
  const commands = [...PAGE.matchAll(/^ {4}banana-serve (.*)$/gm)].map(([, line = '']) => line.split(' '));
  assert.equal(commands.length, 2);
  const folder = project(t, ['app.ts', 'words.ts', 'digits/app.ts']);
  for (const args of commands) {
    const isNamed = args[0] === './app.ts';
    const flags = isNamed ? args.slice(1) : args;
    const server = await startHere(isNamed ? './app.ts' : null, { t, cwd: folder, args: flags });
    await server.until(({ state }) => state === 'ready');
    assert.equal((await call(`${server.url}/models/words/`, '{}')).json(), 'words.ts');
    assert.equal((await call(server.url, '{}')).status, isNamed ? 200 : 404);
    await server.stop();
  }
});

test('the command of the model store on the page serves the models on the page', LIMIT, async (t) => {
  const [command, ...words] = block('sh').trim().split(' ');
  assert.equal(command, 'banana-serve');
  const folder = project(t, ['models/res-net.v2/app.ts', 'models/words.ts']);
  const args = [...words, '--management-port', '0'];
  const server = await startHere(null, { t, cwd: folder, args });
  const { models } = await server.until(({ state }) => state === 'ready');
  assert.deepEqual(
    models.map(({ name, version }) => [name, version]),
    [
      ['res_net_v2', '1'],
      ['words', '1'],
    ],
  );
  assert.equal((await call(`${server.url}/predictions/words`, '{}')).json(), 'models/words.ts');
  await server.stop();
});
