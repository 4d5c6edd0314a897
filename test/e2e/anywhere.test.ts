/** An app in a folder that knows no package: `banana-serve` is the server's own copy, others come from where it was started. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { ask } from '../helpers/ask.js';
import { startServer } from '../helpers/server.js';
import { shareServer } from '../helpers/shared-server.js';

const LIMIT = { timeout: 60_000 };
const MODULE = '{ "type": "module" }';

/** A test, or `node:test` for the group of tests whose definition is running. */
interface Ending {
  after(then: () => void): void;
}

/** A folder with no package above it; removed when the test ends, or the group of tests. */
function emptyFolder(t: Ending, files: Readonly<Record<string, string>>): string {
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
  };
}

/** Tells whether every way of importing gives the one package, and where its other packages lie. */
const HANDLER = `
  app.handler('/', async () => {
    const imported = await import('banana-serve');
    const required = createRequire(HERE)('banana-serve');
    const { version } = createRequire(HERE)('banana-serve/package.json');
    const isOne = [imported, required].every((face) => face.Potassium === Potassium && face.Response === Response);
    return new Response({ json: { isOne, hasVersion: version.length > 0, from: from.where } });
  });`;

const ES = `
  import { createRequire } from 'node:module';
  import { Potassium, Response } from 'banana-serve';
  import from from 'from-start';
  const HERE = import.meta.url;
  export const app = new Potassium('anywhere').init(() => ({}));${HANDLER}`;

const CJS = `
  const { createRequire } = require('node:module');
  const { Potassium, Response } = require('banana-serve');
  const from = require('from-start');
  const HERE = __filename;
  const app = new Potassium('anywhere').init(() => ({}));${HANDLER}
  module.exports = app;`;

/** A source that TypeScript compiles to a CommonJS module. */
const TS = `
  import { createRequire } from 'node:module';
  import { Potassium, Response } from 'banana-serve';
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

/** Each app twice: in a folder without packages, and in one with other packages of the same names. */
interface Placed {
  readonly what: string;
  readonly path: string;
  readonly from: 'start' | 'app';
}

function placed(): Placed[] {
  const own = { ...packageFiles('', 'from-start', 'app'), ...packageFiles('', 'banana-serve', 'app') };
  return APPS.flatMap(([what, files]) => {
    const [name = ''] = what.split(' ');
    const alone = join(emptyFolder({ after }, files), name);
    const among = join(emptyFolder({ after }, { ...files, ...own }), name);
    return [
      { what, path: alone, from: 'start' },
      { what, path: among, from: 'app' },
    ] as const;
  });
}

describe('one server of all of them', LIMIT, () => {
  const apps = placed();
  const args = apps.flatMap(({ path }, i) => ['--model', `m${i}=${path}`]);
  const cwd = emptyFolder({ after }, packageFiles('', 'from-start', 'start'));
  const shared = shareServer(null, { args, cwd });

  for (const [i, { what, from }] of apps.entries()) {
    const title =
      from === 'start'
        ? "in an empty folder has the server's own copy, once, and packages of where it was started"
        : 'packages of its own go before those of where the server was started, another banana-serve does not';
    test(from === 'start' ? `${what} ${title}` : `${what}: ${title}`, async () => {
      const model = { url: `${shared.server.url}/models/m${i}/` };
      assert.deepEqual((await ask(model, {})).json(), { isOne: true, hasVersion: true, from });
    });
  }
});

test('the server is started in the folder of an app that knows no package', LIMIT, async (t) => {
  for (const text of [ES.replace('from-start', 'node:path'), CJS.replace('from-start', 'node:path')]) {
    const name = text.startsWith('\n  import') ? 'app.mjs' : 'app.cjs';
    const cwd = emptyFolder(t, { [name]: text });
    const server = await startServer(join(cwd, name), { t, cwd });
    assert.deepEqual((await ask(server, {})).json(), { isOne: true, hasVersion: true });
    await server.stop();
  }
});

for (const [name, text] of [
  ['app.mjs', "import 'nowhere-at-all'; export const inference = () => 1;"],
  ['app.cjs', "require('nowhere-at-all'); exports.inference = () => 1;"],
  ['app.ts', "import 'nowhere-at-all'; export const inference = () => 1;"],
] as const) {
  test(`${name}: a missing package is reported with the file that imports it`, LIMIT, async (t) => {
    const folder = emptyFolder(t, { [name]: text });
    const server = await startServer(join(folder, name), { t, args: ['--on-crash-loop', 'exit'] });
    assert.deepEqual(await server.ended, { code: 3, signal: null });
    assert.match(
      server.stderr(),
      new RegExp(`${name.replace('.', String.raw`\.`)}.*nowhere-at-all|nowhere-at-all.*${name}`),
    );
  });
}
