/** `supervise()` in programs of each kind: however they load the package, a call is answered and the program ends by itself. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { ROOT } from '../helpers/server.js';

const run = promisify(execFile);

const APP = 'export const inference = ({ n }: { n: number }) => n + 1;';
const CALL = `
const add = await supervise<typeof import('./app.js')>(new URL('app.ts', import.meta.url), { spares: 0 });
console.log(await add({ n: 1 }));`;
const MODULE = `import { supervise } from 'banana-serve';${CALL}`;
const PLAIN = MODULE.replace("<typeof import('./app.js')>", '');
const COMMONJS = `
const { supervise } = require('banana-serve');
supervise(__dirname + '/app.ts').then(async (add) => console.log(await add({ n: 1 })));`;
/** As jest loads CommonJS: it runs each file by itself, with a `require` and a `process` of its own that read no ES modules. */
const OTHER_REQUIRE = `
const { join, dirname } = require('node:path');
function load(path) {
  if (!path.endsWith('.cjs')) throw new SyntaxError('Cannot use import statement outside a module');
  const code = require('node:fs').readFileSync(path, 'utf8');
  const exports = {};
  const other = (name) => (name.startsWith('node:') ? require(name) : load(join(dirname(path), name)));
  const own = { __proto__: process, getBuiltinModule: () => ({ createRequire: () => other }) };
  new Function('exports', 'require', '__filename', 'process', code)(exports, other, path, own);
  return exports;
}
const own = load(require.resolve('banana-serve'));
${COMMONJS.replace("require('banana-serve')", 'own')}`;
const THREAD = `
const { Worker } = require('node:worker_threads');
const thread = new Worker(__dirname + '/commonjs.cjs');
thread.once('exit', (code) => console.log('thread ' + code));`;

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'banana-loads-'));
  await mkdir(join(folder, 'node_modules'));
  await symlink(ROOT, join(folder, 'node_modules/banana-serve'));
  const files = {
    'package.json': '{"type":"module"}',
    'app.ts': APP,
    'module.mjs': PLAIN,
    'typescript.ts': MODULE,
    'commonjs.cjs': COMMONJS,
    'other-require.cjs': OTHER_REQUIRE,
    'thread.cjs': THREAD,
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  for (const [format, from, to] of [
    ['esm', 'typescript.ts', 'bundle.mjs'],
    ['cjs', 'commonjs.cjs', 'bundle.cjs'],
  ] as const)
    await build({
      entryPoints: [join(folder, from)],
      outfile: join(folder, to),
      format,
      bundle: true,
      platform: 'node',
      packages: 'external',
    });
});
after(() => rm(folder, { recursive: true, force: true }));

const TSX = join(ROOT, 'node_modules/tsx/dist/cli.mjs');

const WAYS: readonly (readonly [way: string, args: readonly string[], printed: string])[] = [
  ['an ES module', ['module.mjs'], '2\n'],
  ['CommonJS', ['commonjs.cjs'], '2\n'],
  ['CommonJS whose require reads no ES modules', ['other-require.cjs'], '2\n'],
  ['TypeScript under tsx', [TSX, 'typescript.ts'], '2\n'],
  ['an ES module bundled by esbuild', ['bundle.mjs'], '2\n'],
  ['CommonJS bundled by esbuild', ['bundle.cjs'], '2\n'],
  ['a thread', ['thread.cjs'], '2\nthread 0\n'],
];

describe('supervise() is loaded by', { timeout: 480_000 }, () => {
  for (const [way, args, printed] of WAYS)
    test(way, async () => {
      const { stdout, stderr } = await run(process.execPath, args, { cwd: folder, timeout: 240_000 });
      assert.deepEqual([stdout, stderr], [printed, '']);
    });
});
