import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resolveOptions } from '../../../supervisor/options/resolve.js';
import { readServeOptions } from '../../../supervisor/options/read-objects.js';
import { serve } from '../../../supervisor/serve.js';

const CYCLE: unknown[] = [];
CYCLE.push(CYCLE);

const APP = /^serve\(\{ app \}\): .* is not allowed; give the path of the app\.$/;
const COMMAND =
  /^serve\(\{ workerCommand \}\): .* is not allowed; give an array of the program and its arguments/;
const CWD = /^serve\(\{ cwd \}\): .* is not allowed; give the path of a folder\.$/;

const REFUSED: readonly (readonly [given: unknown, value: string, message: RegExp])[] = [
  [null, 'null', /^serve\(options\): null is not allowed; give an object of options, such as \{ app: /],
  ['./app.ts', '"./app.ts"', /^serve\(options\): "\.\/app\.ts" is not allowed; give an object/],
  [[], '[]', /^serve\(options\): \[\] is not/],
  [5, '5', /^serve\(options\): 5 is not/],
  [{ app: 5 }, '5', APP],
  [{ app: '' }, '""', APP],
  [{ app: ' ' }, '" "', APP],
  [{ app: null }, 'null', APP],
  [{ app: new URL('file:///app.ts') }, 'file:///app.ts', APP],
  [{ workerCommand: [] }, '[]', COMMAND],
  [{ workerCommand: 'python x.py' }, '"python x.py"', COMMAND],
  [{ workerCommand: null }, 'null', COMMAND],
  [{ workerCommand: [''] }, "[ '' ]", COMMAND],
  [{ workerCommand: ['python', 5] }, "[ 'python', 5 ]", COMMAND],
  [{ workerCommand: ['python', , 'x'] }, "[ 'python', <1 empty item>, 'x' ]", COMMAND], // eslint-disable-line no-sparse-arrays
  [{ cwd: 5 }, '5', CWD],
  [{ cwd: '' }, '""', CWD],
  [{ cwd: null }, 'null', CWD],
  [{ cwd: '/no/such/folder' }, '"/no/such/folder"', CWD],
  [{ cwd: process.execPath }, process.execPath, CWD],
  [{ cwd: 'a\0b' }, 'a\\u0000b', CWD],
  [{ workers: 2n }, '2n', /^serve\(\{ workers \}\): 2n is not allowed; give a whole number/],
  [{ workers: CYCLE }, '[Circular', /^serve\(\{ workers \}\): .* is not allowed; give a whole number/],
  [{ workers: NaN }, 'NaN', /^serve\(\{ workers \}\): NaN is not allowed; give a whole number/],
  [{ runTimeout: () => 5 }, '[Function', /^serve\(\{ runTimeout \}\): .* is not allowed; give a duration/],
  [{ host: Symbol('x') }, 'Symbol(x)', /^serve\(\{ host \}\): .* is not allowed; give an address/],
  [{ workercommand: ['a'] }, 'workercommand', /there is no such option\. Did you mean workerCommand\?$/],
  [{ zzz: 1 }, 'zzz', /^serve\(\{ zzz \}\): .* Known options: app, workerCommand, models, cwd, host, port, /],
];

for (const [given, value, message] of REFUSED) {
  test(`serve() refuses ${value} with SERVE_CONFIG: ${message.source.slice(0, 40)}`, async () => {
    await assert.rejects(serve(given as Parameters<typeof serve>[0]), (error: Error & { code?: string }) => {
      assert.equal(error.code, 'SERVE_CONFIG');
      assert.match(error.message, message);
      assert.ok(error.message.includes(value), error.message);
      return true;
    });
  });
}

test('an app that starts itself by run() is told of run()', async () => {
  const given = { app: './app.ts', prot: 1 } as Parameters<typeof serve>[0];
  const ran = serve(given, { appPlace: 'served 1 /app.ts' });
  await assert.rejects(ran, /^ServeError: run\(\{ prot \}\): there is no such option\. Did you mean port\?$/);
});

test('an empty object sets no options', () => {
  for (const given of [{}, { app: undefined, workerCommand: undefined, cwd: undefined }]) {
    const { app, workerCommand, cwd, source } = readServeOptions(given);
    assert.deepEqual([app, workerCommand, cwd], [undefined, undefined, process.cwd()]);
    assert.equal(resolveOptions([source]).explicit.size, 0);
  }
});

test("the worker command is a copy of the caller's array", () => {
  const workerCommand = ['python3', 'worker.py'];
  const checked = readServeOptions({ workerCommand, app: 'model.bin' });
  workerCommand.length = 0;
  assert.deepEqual([checked.workerCommand, checked.app], [['python3', 'worker.py'], 'model.bin']);
});
