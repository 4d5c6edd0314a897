/** Every mistake a person makes with an app ends with exit code 3 (2 if nothing was started) and a line that tells file, line, cause and cure. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { runCommand } from '../helpers/server.js';

const HERE = '<here>';
const GOOD = 'export const inference = () => 1;';

interface Mistake {
  readonly what: string;
  readonly app: string;
  readonly source: string;
  readonly says: string;
}

const IN_THE_APP: readonly Mistake[] = [
  {
    what: 'a syntax error in TypeScript',
    app: 'app.ts',
    source: 'export function inference(x: string) {\n  return { x: ;\n}',
    says: `${HERE}/app.ts:2:14: syntax error: Unexpected ";"`,
  },
  {
    what: 'a syntax error in JavaScript',
    app: 'app.mjs',
    source: 'export function inference(x) {\n  return { x: ;\n}',
    says: `${HERE}/app.mjs:2: syntax error: Unexpected token ';'`,
  },
  {
    what: 'top-level await where the file becomes CommonJS',
    app: 'app.ts',
    source: 'const a = await Promise.resolve(1);\nexport const inference = () => a;',
    says: `${HERE}/app.ts:1:10: syntax error: Top-level await is currently not supported with the "cjs" output format. Name the file .mts, or put { "type": "module" } into the package.json beside it.`,
  },
  {
    what: 'no inference',
    app: 'app.ts',
    source: 'const x: number = 1;\nexport function predict() {}',
    says: `${HERE}/app.ts:2: app.ts exports no \`inference\` function. It exports: predict. Rename \`predict\` to \`inference\`, or export it under that name.`,
  },
  {
    what: 'no exports',
    app: 'app.cjs',
    source: '',
    says: `${HERE}/app.cjs:1: app.cjs exports no \`inference\` function. It exports nothing. Add \`export function inference(modelInputs) { … }\`.`,
  },
  {
    what: 'an inference of the wrong kind',
    app: 'app.mjs',
    source: '\nexport const inference = 5;',
    says: `${HERE}/app.mjs:2: export \`inference\` is a number; make it a function`,
  },
  {
    what: 'a Potassium that only a function makes',
    app: 'app.mjs',
    source:
      "import { Potassium } from 'banana-serve';\nexport function createApp() {\n  return new Potassium('made');\n}",
    says: `${HERE}/app.mjs:3: nothing makes this Potassium app while the file is imported. Call the function that does, at the top level of the file, and export what it returns: \`export default createApp()\`, by the name of yours.`,
  },
  {
    what: 'a Potassium in a list',
    app: 'app.mjs',
    source: "import { Potassium } from 'banana-serve';\nexport const apps = [new Potassium('listed')];",
    says: `${HERE}/app.mjs:2: this file makes a Potassium app and does not export it as its default. Add \`export default app\`, or \`module.exports = app\` in CommonJS.`,
  },
  {
    what: 'two Potassium apps, neither of them served',
    app: 'app.mjs',
    source:
      "import { Potassium } from 'banana-serve';\nexport const app = new Potassium('one');\nexport const other = new Potassium('two');",
    says: `${HERE}/app.mjs:2: \`app\` and \`other\` are Potassium apps, and a file serves one: call \`serve()\` on that one, or make it the default export`,
  },
  {
    what: 'an init of the wrong kind',
    app: 'app.mjs',
    source: `${GOOD}\nexport const init = 'load';`,
    says: `${HERE}/app.mjs:2: export \`init\` is a string; make it a function or remove it`,
  },
  {
    what: 'an init that is a generator',
    app: 'app.ts',
    source: `${GOOD}\nexport function* init(): Generator<number> {\n  yield 1;\n}`,
    says: `${HERE}/app.ts:2: \`init\` is a generator: what stands in it would not run. Make it a plain or an async function`,
  },
  {
    what: 'a Potassium whose init is an async generator',
    app: 'app.mjs',
    source:
      "import { Potassium } from 'banana-serve';\nconst app = new Potassium('x');\napp.init(async function* () {\n  yield {};\n});\nexport default app;",
    says: `${HERE}/app.mjs:3: \`init\` is a generator: what stands in it would not run. Make it a plain or an async function`,
  },
  {
    what: 'a package that is not installed',
    app: 'app.ts',
    source:
      "// a comment\nimport { pipeline } from 'not-installed-anywhere';\nexport const inference = pipeline;",
    says: `${HERE}/app.ts:2: cannot import "not-installed-anywhere": the package is not installed. Run: npm install not-installed-anywhere`,
  },
  {
    what: 'an import of its own that is missing',
    app: 'app.ts',
    source: "import { f } from './lib/nope';\nexport const inference = f;",
    says: `${HERE}/app.ts:1: cannot import "./lib/nope": no such file. Check the path and its extension.`,
  },
  {
    what: 'an import that throws',
    app: 'app.ts',
    source: `type Gone = string;\n\nthrow new Error('no licence');\n${GOOD}`,
    says: `${HERE}/app.ts:3:7: importing the app threw: Error: no licence`,
  },
  {
    what: 'an init that throws',
    app: 'app.ts',
    source: `type Gone = string;\nexport async function init() {\n  throw new Error('no weights');\n}\n${GOOD}`,
    says: `${HERE}/app.ts:3:9: init threw: Error: no weights`,
  },
  {
    what: 'a process.exit while it is imported',
    app: 'app.mjs',
    source: `${GOOD}\nprocess.exit(7);`,
    says: `process.exit(7) was called at ${HERE}/app.mjs:2:9`,
  },
  {
    what: 'a process.exit in its init',
    app: 'app.ts',
    source: `${GOOD}\nexport async function init(): Promise<void> {\n  await null;\n  process.exit();\n}`,
    says: `process.exit() was called at ${HERE}/app.ts:4:11`,
  },
  {
    what: 'an option of the server in its config',
    app: 'app.mjs',
    source: `${GOOD}\nexport const config = { port: 9000 };`,
    says: `${HERE}/app.mjs: config.port: this option belongs to the server, not to a model. Set --port or BANANA_PORT instead.`,
  },
  {
    what: 'a mistyped option in its config',
    app: 'app.mjs',
    source: `${GOOD}\nexport const config = { runTimout: '3s' };`,
    says: `${HERE}/app.mjs: config.runTimout: there is no such option. Did you mean runTimeout?`,
  },
  {
    what: 'a wish in its config that is no yes or no',
    app: 'app.mjs',
    source: `${GOOD}\nexport const config = { forms: 'yes' };`,
    says: `${HERE}/app.mjs:2: export \`config\`: forms must be true or false`,
  },
  {
    what: 'a bad value in its config',
    app: 'app.mjs',
    source: `${GOOD}\nexport const config = { runTimeout: 'soon' };`,
    says: `${HERE}/app.mjs: config.runTimeout: "soon" is not allowed; give a duration with a unit, such as 500ms, 30s or 5m, up to 24 days.`,
  },
];

/** Bounded: each of them is one process that ends by itself. */
const RUNS = { concurrency: 2, timeout: 60_000 };

describe('an app with', RUNS, () => {
  for (const { what, app, source, says } of IN_THE_APP) {
    test(`${what}: exit code 3, and the reason where to look`, async (t) => {
      const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'banana-mistake-')));
      t.after(() => rmSync(cwd, { recursive: true }));
      writeFileSync(join(cwd, app), source);
      const command = runCommand([app, '--port', '0', '--restart-limit', '0'], { t, cwd });
      const { code } = await command.ended;
      const told = command.stderr().replaceAll(cwd, HERE);
      assert.equal(told.split(says).length, 2, `once, and not again where the server ends: ${told}`);
      assert.match(
        told,
        /; it will not be restarted: .*\n[^]*no worker could start; the reason stands above\n/,
      );
      assert.doesNotMatch(told, /[.?][.;]/, 'nothing is joined to a sentence that has ended');
      assert.equal(code, 3);
      assert.doesNotMatch(
        told,
        /^\s+at .*(?:node:|dist\/(?:worker|supervisor)|tsx)/m,
        'frames of the app alone',
      );
      assert.equal(command.stdout(), '');
    });
  }
});

const BEFORE_THE_START: readonly (readonly [given: readonly string[], says: string])[] = [
  [['ap.ts'], 'ap.ts: no such file. Did you mean app.ts?'],
  [['lib/app.ts'], 'lib/app.ts: no such file. The folder lib does not exist either.'],
  [
    ['empty'],
    'empty is a folder without app.ts, app.mts, app.cts, app.js, app.mjs, app.cjs, app.py, and without a service.ts.',
  ],
  [['moved.py'], 'moved.py is a link to models/app.py, which does not exist.'],
  [['round.ts'], 'round.ts is a link to round.ts, which leads back to itself.'],
  [['chain.ts'], 'chain.ts is a link to round.ts, which leads back to itself.'],
  [['linked'], 'linked/app.py is a link to ../gone.py, which does not exist.'],
  [['model.onnx'], 'model.onnx: an app is one of .ts .mts .cts .js .mjs .cjs .py, not .onnx.'],
];

describe('a path that is no app', RUNS, () => {
  for (const [given, says] of BEFORE_THE_START) {
    test(`${given.join(' ')}: exit code 2, nothing is started`, async (t) => {
      const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'banana-mistake-')));
      t.after(() => rmSync(cwd, { recursive: true }));
      writeFileSync(join(cwd, 'app.ts'), GOOD);
      writeFileSync(join(cwd, 'model.onnx'), '');
      mkdirSync(join(cwd, 'empty'));
      symlinkSync('models/app.py', join(cwd, 'moved.py'));
      symlinkSync('round.ts', join(cwd, 'round.ts'));
      symlinkSync('round.ts', join(cwd, 'chain.ts'));
      mkdirSync(join(cwd, 'linked'));
      symlinkSync('../gone.py', join(cwd, 'linked', 'app.py'));
      const command = runCommand([...given, '--port', '0'], { t, cwd });
      const { code } = await command.ended;
      assert.equal(command.stderr(), `banana-serve: ${says}\n`);
      assert.equal(code, 2);
    });
  }
});
