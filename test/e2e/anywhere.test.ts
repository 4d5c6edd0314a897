/** An app in a folder that knows no package: `banana-serve` is the server's own copy, others come from where it was started. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { ask } from '../helpers/ask.js';
import { startServer, type Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };
const MODULE = '{ "type": "module" }';

/** A folder with no package above it; removed when the test ends. */
function emptyFolder(t: TestContext, files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'banana-anywhere-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

/** A package that exports its own path. */
function packageFiles(root: string, name: string, where: string): Record<string, string> {
  const folder = `${root}node_modules/${name}/`;
  return {
    [`${folder}package.json`]: `{ "name": "${name}", "version": "0.0.0", "main": "./index.js" }`,
    [`${folder}index.js`]: `exports.where = '${where}'; exports.Potassium = class {};`,
    [`${folder}potassium.js`]: 'exports.Potassium = class {};',
  };
}

/** Tells whether every way of importing gives the one package, and where its other packages lie. */
const HANDLER = `
  app.handler('/', async () => {
    const requireHere = createRequire(HERE);
    const faces = [await import('banana-serve'), await import('banana-serve/potassium')];
    faces.push(requireHere('banana-serve'), requireHere('banana-serve/potassium'));
    const services = [await import('banana-serve/mms'), requireHere('banana-serve/mms'), faces[0]];
    const { version } = requireHere('banana-serve/package.json');
    const isOne =
      faces.every((face) => face.Potassium === Potassium && face.Response === Response) &&
      services.every((face) => face.ModelHandler === services[0].ModelHandler);
    return new Response({ json: { isOne, hasVersion: version.length > 0, from: from.where } });
  });`;

const ES = `
  import { createRequire } from 'node:module';
  import { Potassium, Response } from 'banana-serve/potassium';
  import from from 'from-start';
  const HERE = import.meta.url;
  export const app = new Potassium('anywhere').init(() => ({}));${HANDLER}`;

const CJS = `
  const { createRequire } = require('node:module');
  const { Potassium, Response } = require('banana-serve/potassium');
  const from = require('from-start');
  const HERE = __filename;
  const app = new Potassium('anywhere').init(() => ({}));${HANDLER}
  module.exports = app;`;

/** A source that TypeScript compiles to a CommonJS module. */
const TS = `
  import { createRequire } from 'node:module';
  import { Potassium, Response } from 'banana-serve/potassium';
  import * as from from 'from-start';
  enum Kind { A = 'anywhere' }
  const HERE = __filename;
  export const app: Potassium = new Potassium(Kind.A).init(() => ({}));${HANDLER}`;

const APPS: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ['app.mjs', { 'app.mjs': ES }],
  ['app.js', { 'app.js': ES, 'package.json': MODULE }],
  ['app.cjs', { 'app.cjs': CJS }],
  ['app.mts', { 'app.mts': ES.replaceAll("from from 'from", "* as from from 'from") }],
  ['app.ts of an ES package', { 'app.ts': `enum Kind { A }\n${ES}`, 'package.json': MODULE }],
  ['app.ts', { 'app.ts': TS }],
  ['app.cts', { 'app.cts': TS }],
];

/** One server for all of these models; each app lies in a folder of its own, and the server starts in another. */
async function startAll(
  t: TestContext,
  apps: readonly (readonly [path: string, files: Readonly<Record<string, string>>])[],
): Promise<Server> {
  const cwd = emptyFolder(t, packageFiles('', 'from-start', 'start'));
  const models = apps.flatMap(([name, files], i) => [
    '--model',
    `m${i}=${join(emptyFolder(t, files), name)}`,
  ]);
  return startServer(null, { t, cwd, args: models });
}

const fileOf = (what: string): string => what.split(' ')[0] ?? '';
const askModel = (server: Server, i: number): ReturnType<typeof ask> =>
  ask({ url: `${server.url}/models/m${i}/` }, {});

test('in an empty folder', LIMIT, async (t) => {
  const server = await startAll(
    t,
    APPS.map(([what, files]) => [fileOf(what), files]),
  );
  for (const [i, [what]] of APPS.entries())
    await t.test(
      `${what} has the server's own copy, once, and packages of where it was started`,
      async () => {
        const answer = (await askModel(server, i)).json();
        assert.deepEqual(answer, { isOne: true, hasVersion: true, from: 'start' });
      },
    );
  await server.stop();
});

test('beside packages of its own', LIMIT, async (t) => {
  const own = { ...packageFiles('', 'from-start', 'app'), ...packageFiles('', 'banana-serve', 'app') };
  // One of each loader: the other kinds of files differ only in which of these they get.
  const apps = APPS.filter(([what]) => ['app.mjs', 'app.cjs', 'app.mts', 'app.ts'].includes(what));
  const server = await startAll(
    t,
    apps.map(([what, files]) => [fileOf(what), { ...files, ...own }]),
  );
  for (const [i, [what]] of apps.entries())
    await t.test(
      `${what}: those go before the packages of where the server was started, another banana-serve does not`,
      async () => {
        const answer = (await askModel(server, i)).json();
        assert.deepEqual(answer, { isOne: true, hasVersion: true, from: 'app' });
      },
    );
  await server.stop();
});

test('the server is started in the folder of an app that knows no package', LIMIT, async (t) => {
  const files = {
    'app.mjs': ES.replace('from-start', 'node:path'),
    'app.cjs': CJS.replace('from-start', 'node:path'),
  };
  const cwd = emptyFolder(t, files);
  const args = Object.keys(files).flatMap((name, i) => ['--model', `m${i}=${name}`]);
  const server = await startServer(null, { t, cwd, args });
  for (const i of Object.keys(files).keys())
    assert.deepEqual((await askModel(server, i)).json(), { isOne: true, hasVersion: true });
  await server.stop();
});
