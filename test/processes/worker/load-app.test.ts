import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, describe, test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { appFolder } from '../../worker/app-folder.js';

const PROBE = fileURLToPath(new URL('load-app-probe.js', import.meta.url));

interface Outcome {
  readonly output?: unknown;
  readonly modelOptions?: unknown;
  readonly name?: string;
  readonly message?: string;
}

type Files = Readonly<Record<string, string>>;

/**
 * Loads the file named `app.*`. TypeScript gets a process of its own, since its loader cannot be unloaded; the
 * JavaScript apps share one.
 */
async function load(t: TestContext, files: Files): Promise<Outcome & { folder: string }> {
  const name = appName(files);
  const javaScript = JAVASCRIPT.get(files);
  if (javaScript !== undefined) return { ...(await javaScript.outcome), folder: javaScript.folder };
  const folder = appFolder(t, files);
  const [outcome] = await probe([join(folder, name)]);
  return { ...outcome, folder };
}

function appName(files: Files): string {
  return Object.keys(files).find((name) => name.startsWith('app.') || name.includes('/app.')) ?? 'app.ts';
}

async function probe(paths: readonly string[]): Promise<Outcome[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [PROBE, ...paths]);
  return JSON.parse(stdout) as Outcome[];
}

const ESM = '{"type":"module"}';
const TYPED = 'export function inference(x: string): string { return "typed " + x; }';

const LOADS: readonly (readonly [what: string, files: Files, output: unknown])[] = [
  ['TypeScript in a folder without package.json', { 'app.ts': TYPED }, 'typed in'],
  ['TypeScript in an ES module package', { 'package.json': ESM, 'app.ts': TYPED }, 'typed in'],
  [
    "what type stripping cannot do, and what the app's tsconfig says",
    {
      'tsconfig.json': `{ "compilerOptions": {
        "experimentalDecorators": true, "baseUrl": ".", "paths": { "@lib/*": ["src/lib/*"] } } }`,
      'app.ts': `import { aliased } from '@lib/aliased';
        import labels from './labels.json';
        import { plain } from './plain';
        enum Kind { Cat = 'cat' }
        const loud = (_: unknown, _key: string, d: PropertyDescriptor): void => { d.value = () => 'decorated'; };
        class Model {
          constructor(readonly kind: Kind) {}
          @loud run() { return 'not decorated'; }
        }
        const model = new Model(Kind.Cat);
        export const inference = () => [aliased, labels[1], plain, model.kind, model.run()];`,
      'src/lib/aliased.ts': "export const aliased: string = 'aliased';",
      'labels.json': '["a","b"]',
      'plain.ts': "export const plain: string = 'plain';",
    },
    ['aliased', 'b', 'plain', 'cat', 'decorated'],
  ],
  [
    'a JSON import with its type in an ES module',
    {
      'package.json': ESM,
      'app.js':
        "import labels from './labels.json' with { type: 'json' }; export const inference = () => labels[1];",
      'labels.json': '["a","b"]',
    },
    'b',
  ],
  [
    'imports without an extension and with the one of the output',
    {
      'package.json': ESM,
      'app.ts': "import { a } from './a'; import { b } from './b.js'; export const inference = () => a + b;",
      'a.ts': "export const a: string = 'a';",
      'b.ts': "export const b: string = 'b';",
    },
    'ab',
  ],
  [
    'processes that it starts in TypeScript, with its tsconfig, whatever starts them',
    {
      'package.json': ESM,
      'tsconfig.json': '{ "compilerOptions": { "baseUrl": ".", "paths": { "@lib/*": ["src/lib/*"] } } }',
      'src/lib/mood.ts': "export enum Mood { Happy = 'happy' }",
      'child.ts':
        "import { Mood } from '@lib/mood'; console.log(Mood.Happy, process.argv[2]); process.disconnect();",
      'child.mts': "await null; import { Mood } from '@lib/mood'; console.log(Mood.Happy, process.argv[2]);",
      'child.cts': "import { Mood } from '@lib/mood'; console.log(Mood.Happy, require.main === module);",
      'app.ts': `import cluster from 'node:cluster';
        import { type ChildProcess, exec, fork, spawn } from 'node:child_process';
        import { text } from 'node:stream/consumers';
        import { fileURLToPath } from 'node:url';
        const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
        cluster.setupPrimary({ exec: here('child.ts'), args: ['cluster'], silent: true });
        const started = (): ChildProcess[] => [
          fork(new URL('./child.ts', import.meta.url), ['fork'], { silent: true, env: {} }),
          spawn(process.execPath, [here('child.mts'), 'spawn']),
          exec(\`"\${process.execPath}" child.cts\`, { cwd: here('.') }),
          cluster.fork().process,
          spawn(process.execPath, ['-p', '"of Node"']),
        ];
        export const inference = () => Promise.all(started().map(async ({ stdout, stderr }) => {
          const [out, err] = await Promise.all([text(stdout!), text(stderr!)]);
          return out.trim() + err;
        }));`,
    },
    ['happy fork', 'happy spawn', 'happy true', 'happy cluster', 'of Node'],
  ],
  [
    'a thread in TypeScript ends with an error that says what to do',
    {
      'package.json': ESM,
      'thread.ts': "enum Mood { Happy = 'happy' }",
      'app.ts': `import { once } from 'node:events';
        import { Worker } from 'node:worker_threads';
        export const inference = async (): Promise<string> => {
          const [{ message, stack }] = await once(new Worker(new URL('./thread.ts', import.meta.url)), 'error');
          return (stack.includes(message) && /Threads cannot .*$/.exec(message)?.[0]) || stack;
        };`,
    },
    'Threads cannot load this file in TypeScript: write it in JavaScript (.mjs), compile it, or start it with fork().',
  ],
  [
    '.mts with top-level await',
    { 'app.mts': "const x: string = await Promise.resolve('mts'); export const inference = () => x;" },
    'mts',
  ],
  [
    '.cts with ES syntax',
    { 'app.cts': "export const inference = (): string => 'cts ' + typeof require;" },
    'cts function',
  ],
  [
    '.cts with export =',
    { 'app.cts': "const inference = (): string => 'cts'; export = { inference };" },
    'cts',
  ],
  ['.js as CommonJS', { 'app.js': "exports.inference = () => 'cjs ' + typeof require;" }, 'cjs function'],
  ['.js as an ES module', { 'package.json': ESM, 'app.js': "export const inference = () => 'esm';" }, 'esm'],
  ['.mjs', { 'app.mjs': "export async function inference() { return 'mjs'; }" }, 'mjs'],
  ['.cjs', { 'app.cjs': "module.exports = { inference: () => 'cjs' };" }, 'cjs'],
  ['a default export', { 'app.mjs': "export default { inference: () => 'default' };" }, 'default'],
  [
    'a default export in TypeScript',
    { 'app.ts': "export default { inference: (): string => 'default' };" },
    'default',
  ],
  [
    'a default export in TypeScript ESM',
    { 'package.json': ESM, 'app.ts': "export default { inference: (): string => 'default' };" },
    'default',
  ],
];

const HERE = '<folder>';

const FAILS: readonly (readonly [what: string, files: Files, message: string | RegExp])[] = [
  ['a missing file', {}, `${HERE}/app.ts: no such file. Check the path and its extension.`],
  ...(['app.ts', 'app.cts', 'app.mjs'] as const).map(
    (app) =>
      [
        `a package that is not installed, in ${app}`,
        { [app]: "// a comment\nimport { x } from 'not-a-package';\nexport const inference = () => x;" },
        `${HERE}/${app}:2: cannot import "not-a-package": the package is not installed. Run: npm install not-a-package`,
      ] as const,
  ),
  [
    'a scoped package that is not installed, by a path inside it',
    { 'app.cjs': "\nrequire('@scope/not-a-package/sub');" },
    `${HERE}/app.cjs:2: cannot import "@scope/not-a-package/sub": the package is not installed. Run: npm install @scope/not-a-package`,
  ],
  [
    'a missing package in a file that the app imports',
    { 'app.mjs': "import './helper.mjs';", 'helper.mjs': "\n\nimport 'not-a-package';" },
    `${HERE}/helper.mjs:3: cannot import "not-a-package": the package is not installed. Run: npm install not-a-package`,
  ],
  [
    'a missing file of its own, in TypeScript',
    { 'app.ts': "\nimport { x } from './nope';\nexport const inference = () => x;" },
    `${HERE}/app.ts:2: cannot import "./nope": no such file. Check the path and its extension.`,
  ],
  [
    'a missing file of its own, in an ES module',
    { 'app.mjs': "\nimport { x } from './nope.mjs';\nexport const inference = () => x;" },
    `${HERE}/app.mjs:2: cannot import "${HERE}/nope.mjs": no such file. Check the path and its extension.`,
  ],
  ...(['app.ts', 'app.mts'] as const).map(
    (app) =>
      [
        `a syntax error in ${app}`,
        { [app]: 'const a = 1;\nexport function inference(x {\n}\n' },
        `${HERE}/${app}:2:28: syntax error: Expected ")" but found "{"`,
      ] as const,
  ),
  [
    'a syntax error in .mjs, of which Node gives no place',
    { 'app.mjs': 'const a = 1;\nexport function inference(x {\n}\n' },
    `${HERE}/app.mjs:2: syntax error: Unexpected token '{'`,
  ],
  [
    'a syntax error in .cjs',
    { 'app.cjs': 'const a = 1;\nfunction inference(x {\n}\n' },
    `${HERE}/app.cjs:2: syntax error: Unexpected token '{'`,
  ],
  [
    'a syntax error in a module that the app imports',
    { 'app.mjs': "import './helper.mjs';", 'helper.mjs': '\n\nlet x = ;' },
    `${HERE}/helper.mjs:3: syntax error: Unexpected token ';'`,
  ],
  [
    'an import of a name that does not exist',
    { 'app.mjs': "import { nope } from 'node:fs';\nexport const inference = nope;" },
    `${HERE}/app.mjs:1: syntax error: The requested module 'node:fs' does not provide an export named 'nope'`,
  ],
  [
    'an import that throws',
    { 'app.mjs': "function load() {\n  throw new Error('no weights');\n}\nload();" },
    new RegExp(`^${HERE}/app.mjs:2:9: importing the app threw: Error: no weights\n    at load `),
  ],
  [
    'an import that throws, in TypeScript',
    {
      'app.ts': "interface Gone {}\n\nfunction load(): Gone {\n  throw new Error('no weights');\n}\nload();",
    },
    new RegExp(`^${HERE}/app.ts:4:9: importing the app threw: Error: no weights\n`),
  ],
  [
    'an import that throws a SyntaxError of its own',
    { 'app.mjs': "\nJSON.parse('{');" },
    new RegExp(`^${HERE}/app.mjs:2:6: importing the app threw: .*JSON`),
  ],
  [
    'an import that throws undefined',
    { 'app.mjs': 'throw undefined;' },
    /\/app.mjs: importing the app threw: thrown value: undefined/,
  ],
  [
    'no exports',
    { 'app.ts': 'const a: number = 1;' },
    `${HERE}/app.ts:1: app.ts exports no \`inference\` function. It exports nothing. Add \`export function inference(modelInputs) { … }\`.`,
  ],
  [
    'a function under another name',
    { 'app.mjs': '\nexport const size = 3;\nexport function predict() {}' },
    `${HERE}/app.mjs:3: app.mjs exports no \`inference\` function. It exports: predict, size. Rename \`predict\` to \`inference\`, or export it under that name.`,
  ],
  [
    'a question mark in its path',
    { 'wh?t/app.ts': 'export const inference = () => 1;' },
    `${HERE}/wh?t/app.ts: the TypeScript loader (tsx) takes the "?" in this path for the beginning of a query, and looks for ${HERE}/wh. Rename the folder or file that has it in its name.`,
  ],
  [
    'a mistyped name',
    { 'app.mjs': '\nexport function infrence() {}' },
    `${HERE}/app.mjs:2: app.mjs exports no \`inference\` function. It exports: infrence. Did you mean \`inference\`? Rename \`infrence\` to \`inference\`, or export it under that name.`,
  ],
  [
    'a batch function under another name',
    { 'app.mjs': '\nexport function predict_batch() {}' },
    `${HERE}/app.mjs:2: app.mjs exports no \`inference\` function. It exports: predict_batch. Rename \`predict_batch\` to \`inferenceBatch\`, or export it under that name.`,
  ],
  [
    'a default export that is a function',
    { 'app.mjs': '\nexport default function () {}' },
    `${HERE}/app.mjs:2: the default export is a function; export it by name: \`export function inference(modelInputs) { … }\`.`,
  ],
  [
    'an inference that is no function',
    { 'app.mjs': '\nexport const inference = 5;' },
    `${HERE}/app.mjs:2: export \`inference\` is a number; make it a function`,
  ],
  [
    'a config of the wrong kind',
    { 'app.mjs': 'export const inference = () => 1;\nexport const config = [];' },
    `${HERE}/app.mjs:2: export \`config\` must be an object, such as { runTimeout: "30s" }`,
  ],
];

/** One process for all of them, begun at once. */
const JAVASCRIPT = loadTogether(
  [...LOADS, ...FAILS].map(([, files]) => files).filter((files) => !appName(files).endsWith('ts')),
);

function loadTogether(apps: readonly Files[]): Map<Files, { folder: string; outcome: Promise<Outcome> }> {
  const folders = apps.map((files) => appFolder({ after }, files));
  const outcomes = probe(apps.map((files, i) => join(folders[i] as string, appName(files))));
  return new Map(
    apps.map((files, i) => [
      files,
      { folder: folders[i] as string, outcome: outcomes.then((list) => list[i] as Outcome) },
    ]),
  );
}

describe('loadApp', { concurrency: 2 }, () => {
  for (const [what, files, output] of LOADS) {
    test(`an app loads: ${what}`, async (t) => {
      const outcome = await load(t, files);
      assert.equal(outcome.message, undefined);
      assert.deepEqual(outcome.output, output);
    });
  }

  test("an app's config comes along", async (t) => {
    const files = {
      'app.mjs': "export const inference = () => 1; export const config = { runTimeout: '5s' };",
    };
    assert.deepEqual((await load(t, files)).modelOptions, { runTimeout: '5s' });
  });

  for (const [what, files, message] of FAILS) {
    test(`an app with ${what} is refused with file, line, cause and cure`, async (t) => {
      const outcome = await load(t, files);
      const told = outcome.message?.replaceAll(outcome.folder, HERE);
      assert.equal(outcome.name, 'AppLoadError', told);
      if (typeof message === 'string') assert.equal(told, message);
      else assert.match(told ?? '', message);
    });
  }
});
