/**
 * Every mistake a person makes with an app ends with exit code 3 (2 if nothing was started) and a line that names file,
 * line, cause and cure. The table has a form of each mistake in each language, or the reason why there is none.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { BOUND_BY_MODES, boundByModes } from '../helpers/bound-by-modes.js';
import { needs } from '../helpers/needs.js';
import { withEachRuntime, withOneRuntime, type Language } from '../helpers/runtimes.js';
import { ROOT, runCommand } from '../helpers/server.js';
import { appFolder } from '../worker/app-folder.js';

const HERE = '<here>';

/** Apps without a mistake. */
const GOOD = 'export const inference = () => 1;';
const GOOD_PYTHON = 'def inference(model_inputs): return 1\n';

/** Files of which the first is the app, and the text about them: the whole of it, or a part. */
interface Form {
  readonly files: Readonly<Record<string, string>>;
  readonly says: string | RegExp;
}

interface Mistake extends Readonly<Record<Language, Form | Absent>> {
  readonly what: string;
  /** The proof that a new start is of no use; without one, the first failure is enough. */
  readonly proof?: 'the same twice' | 'none: it may pass';
  /** The loader of a worker refuses it, as it refuses others with which servers start here. */
  readonly isLoaders?: boolean;
}

/** The mistake does not exist in this language. */
interface Absent {
  readonly because: string;
}

const form = (files: Readonly<Record<string, string>>, says: string | RegExp): Form => ({ files, says });
const none = (because: string): Absent => ({ because });

const MISTAKES: readonly Mistake[] = [
  {
    what: 'a syntax error',
    TypeScript: form(
      { 'app.ts': 'export function inference(x: string) {\n  return { x: ;\n}' },
      `${HERE}/app.ts:2:14: syntax error: Unexpected ";"`,
    ),
    Python: form(
      { 'app.py': 'def inference(x):\n    return (x\n' },
      /<here>\/app\.py:\d: syntax error: .* \(Python 3\.\d+\.\d+, \/.*\)\./,
    ),
  },
  {
    what: 'an await outside of functions, where there can be none',
    isLoaders: true,
    TypeScript: form(
      { 'app.ts': 'const a = await Promise.resolve(1);\nexport const inference = () => a;' },
      `${HERE}/app.ts:1:10: syntax error: Top-level await is currently not supported with the "cjs" output format. Name the file .mts, or put { "type": "module" } into the package.json beside it.`,
    ),
    Python: form(
      { 'app.py': `async def load(): return 1\n\nmodel = await load()\n${GOOD_PYTHON}` },
      /<here>\/app\.py:3: syntax error: 'await' outside function: `model = await load\(\)` \(Python 3\./,
    ),
  },
  {
    what: 'a Potassium that only a comment makes',
    isLoaders: true,
    TypeScript: form(
      {
        'app.mjs': '/**\n * No new Potassium.\n */\n// new Potassium\nexport const a = 1; // new Potassium\n',
      },
      `${HERE}/app.mjs:1: app.mjs exports no \`inference\` function. It exports: a. Add \`export function inference(modelInputs) { … }\`.`,
    ),
    Python: form(
      { 'app.py': '# Potassium("no")\na = 1\n' },
      `${HERE}/app.py:1: app.py has no function \`inference\`. It has: a. Add \`def inference(model_inputs): ...\`.`,
    ),
  },
  {
    what: 'a Potassium that only a function makes',
    isLoaders: true,
    TypeScript: form(
      {
        'app.mjs':
          "import { Potassium } from 'banana-serve/potassium';\nexport function createApp() {\n  return new Potassium('made');\n}",
      },
      `${HERE}/app.mjs:3: this Potassium app is not created while the file is imported. Call the function that creates it at the top level of the file and export its result: \`export default createApp()\`, with your function's name.`,
    ),
    Python: form(
      {
        'app.py':
          'from potassium import Potassium, Request, Response\n\ndef create_app():\n    return Potassium("made")\n',
      },
      `${HERE}/app.py:4: app.py creates a Potassium app, but no variable at the top level of the file holds it: one in a function, a list or a dict is not found. Write \`app = ...\` at the top level of the file, such as \`app = create_app()\`.`,
    ),
  },
  {
    what: 'a Potassium in a list or a dict',
    isLoaders: true,
    TypeScript: form(
      {
        'app.mjs':
          "import { Potassium } from 'banana-serve/potassium';\nexport const apps = [new Potassium('listed')];",
      },
      `${HERE}/app.mjs:2: this file makes a Potassium app and does not export it as its default. Add \`export default app\`, or \`module.exports = app\` in CommonJS.`,
    ),
    Python: form(
      { 'app.py': 'import potassium\napps = {"one": potassium.Potassium("one")}\n' },
      /<here>\/app\.py:2: app\.py creates a Potassium app, but no variable at the top level of the file holds it/,
    ),
  },
  {
    what: 'no inference but in a package that it imports from',
    isLoaders: true,
    TypeScript: none('what a file only imports is not among its exports'),
    Python: form(
      {
        'app.py': 'from json import loads as run\nfrom helper import predict\nsize = 1\n',
        'helper.py': 'def predict(x): return x\n',
      },
      `${HERE}/app.py:1: app.py has no function \`inference\`. It has: size. Add \`def inference(model_inputs): ...\`.`,
    ),
  },
  {
    what: 'an inference that has no value',
    isLoaders: true,
    TypeScript: form(
      {
        'app.ts': "import { nope } from './helper.ts';\nexport const inference = nope;",
        'helper.ts': 'export {};',
      },
      `${HERE}/app.ts:2: export \`inference\` is undefined; make it a function`,
    ),
    Python: form(
      { 'app.py': 'x = 1\ninference = None\n' },
      `${HERE}/app.py:2: \`inference\` is None; make it a function`,
    ),
  },
  {
    what: 'an init that is a generator',
    isLoaders: true,
    TypeScript: form(
      { 'app.mjs': `${GOOD}\nexport function* init() {\n  yield 1;\n}` },
      `${HERE}/app.mjs:2: \`init\` is a generator, so its body would not run. Make it a plain or an async function`,
    ),
    Python: form(
      { 'app.py': `${GOOD_PYTHON}def init():\n    yield\n` },
      `${HERE}/app.py:2: \`init\` is a generator because it has a \`yield\`, so its body would not run. Remove the \`yield\``,
    ),
  },
  {
    what: 'a Potassium whose init is an async generator',
    isLoaders: true,
    TypeScript: form(
      {
        'app.mjs':
          "import { Potassium } from 'banana-serve/potassium';\nconst app = new Potassium('x');\napp.init(async function* () {\n  yield {};\n});\nexport default app;",
      },
      `${HERE}/app.mjs:3: \`init\` is a generator, so its body would not run. Make it a plain or an async function`,
    ),
    Python: form(
      {
        'app.py':
          'from potassium import Potassium\napp = Potassium("x")\n\n@app.init\nasync def load():\n    yield {}\n',
      },
      `${HERE}/app.py:5: \`load\` is a generator because it has a \`yield\`, so its body would not run. Remove the \`yield\``,
    ),
  },
  {
    what: 'a service whose initialize is a generator',
    isLoaders: true,
    TypeScript: form(
      {
        'app.mjs':
          'export class Service {\n  *initialize(context) {\n    yield 1;\n  }\n  handle(data, context) {\n    return data;\n  }\n}',
      },
      `${HERE}/app.mjs:2: \`initialize\` is a generator, so its body would not run. Make it a plain or an async function`,
    ),
    Python: form(
      {
        'app.py':
          'class Service:\n    def initialize(self, context):\n        yield 1\n    def handle(self, data, context):\n        return data\n',
      },
      `${HERE}/app.py:2: \`initialize\` is a generator because it has a \`yield\`, so its body would not run. Remove the \`yield\``,
    ),
  },
  {
    what: 'a package that is not installed',
    TypeScript: form(
      {
        'app.mjs':
          "// a comment\nimport { pipeline } from 'not-installed-anywhere';\nexport const inference = pipeline;",
      },
      `${HERE}/app.mjs:2: cannot import "not-installed-anywhere": the package is not installed. Run: npm install not-installed-anywhere`,
    ),
    Python: form(
      { 'app.py': `# comment\nimport surely_missing\n${GOOD_PYTHON}` },
      /<here>\/app\.py:2: cannot import "surely_missing": the package is not installed\. Run: \/\S+ -m pip install surely_missing\n {4}The interpreter is \/\S+ \(Python 3/,
    ),
  },
  {
    what: 'an import of its own that is missing',
    isLoaders: true,
    TypeScript: form(
      { 'app.ts': "import { f } from './lib/nope';\nexport const inference = f;" },
      `${HERE}/app.ts:1: cannot import "./lib/nope": no such file. Check the path and its extension.`,
    ),
    Python: form(
      { 'app.py': `\nfrom .lib.nope import f\n${GOOD_PYTHON}`, 'lib/yes.py': '' },
      `${HERE}/app.py:2: cannot import ".lib.nope": there is no such module in the folder of the app. Check its name.`,
    ),
  },
  {
    what: 'an import that throws',
    proof: 'the same twice',
    TypeScript: form(
      { 'app.ts': `type Gone = string;\n\nthrow new Error('no licence');\n${GOOD}` },
      `${HERE}/app.ts:3:7: importing the app threw: Error: no licence`,
    ),
    Python: form(
      { 'app.py': `def load():\n    raise ValueError("no licence")\n\nload()\n${GOOD_PYTHON}` },
      /<here>\/app\.py:2: importing the app raised:\n {4}Traceback[^]*?\n {4}ValueError: no licence/,
    ),
  },
  {
    what: 'an init that throws',
    proof: 'the same twice',
    TypeScript: form(
      {
        'app.mjs': `// no types\nexport async function init() {\n  throw new Error('no weights');\n}\n${GOOD}`,
      },
      `${HERE}/app.mjs:3:9: init threw: Error: no weights`,
    ),
    Python: form(
      { 'app.py': `def init():\n    raise ValueError("no weights")\n${GOOD_PYTHON}` },
      /<here>\/app\.py:2: init raised: Traceback[^]*?ValueError: no weights/,
    ),
  },
  {
    what: 'an example that fails',
    proof: 'the same twice',
    TypeScript: form(
      { 'app.mjs': 'export const example = { prompt: 1 };\nexport const inference = (x) => x.text.length;' },
      `${HERE}/app.mjs:2:40: the example call threw: TypeError: Cannot read properties of undefined (reading 'length')`,
    ),
    Python: form(
      { 'app.py': 'example = {"prompt": 1}\ndef inference(x): return x["text"]\n' },
      /<here>\/app\.py:2: the example call raised: Traceback[^]*?KeyError: 'text'/,
    ),
  },
  {
    what: 'an end of its process while it is imported',
    proof: 'none: it may pass',
    TypeScript: form(
      { 'app.mjs': `${GOOD}\nprocess.exit(7);` },
      `process.exit(7) was called at ${HERE}/app.mjs:2:9`,
    ),
    Python: form(
      { 'app.py': `import os\n${GOOD_PYTHON}os._exit(7)\n` },
      `os._exit(7) was called at ${HERE}/app.py:3`,
    ),
  },
  {
    what: 'an exception that ends its process while it is imported',
    proof: 'none: it may pass',
    TypeScript: none('process.exit throws nothing'),
    Python: form(
      { 'app.py': `import sys\n${GOOD_PYTHON}sys.exit(7)\n` },
      `${HERE}/app.py:3: importing the app called sys.exit with 7. A worker imports the file and then calls its functions: put the code of the main program behind \`if __name__ == "__main__":\`.`,
    ),
  },
  {
    what: 'an end of its process in its init',
    proof: 'none: it may pass',
    TypeScript: form(
      {
        'app.mjs': `${GOOD}\nexport async function init() {\n  await null;\n  process.exit();\n}`,
      },
      `process.exit() was called at ${HERE}/app.mjs:4:11`,
    ),
    Python: form(
      { 'app.py': `import sys\n${GOOD_PYTHON}async def init():\n    sys.exit(7)\n` },
      `sys.exit(7) was called at ${HERE}/app.py:4`,
    ),
  },
  {
    what: 'a mistyped option in its config',
    TypeScript: form(
      { 'app.mjs': `${GOOD}\nexport const config = { runTimout: '3s' };` },
      `${HERE}/app.mjs: config.runTimout: there is no such option. Did you mean runTimeout?`,
    ),
    Python: form(
      { 'app.py': `${GOOD_PYTHON}config = {"run_timeout": "3s", "queue_sise": 1}\n` },
      `${HERE}/app.py: config.queueSise: there is no such option. Did you mean queueSize?`,
    ),
  },
  {
    what: 'a wish in its config that is no yes or no',
    isLoaders: true,
    TypeScript: form(
      { 'app.mjs': `${GOOD}\nexport const config = { forms: 'yes' };` },
      `${HERE}/app.mjs:2: export \`config\`: forms must be true or false`,
    ),
    Python: form(
      { 'app.py': `${GOOD_PYTHON}config = {"forms": "yes"}\n` },
      /<here>\/app\.py.*forms must be True or False/,
    ),
  },
  {
    what: 'more calls at the same time than a worker runs',
    isLoaders: true,
    TypeScript: form(
      { 'app.mjs': `${GOOD}\nexport const config = { concurrency: 129 };` },
      `${HERE}/app.mjs:2: export \`config\`: concurrency must be a whole number from 1 to 128`,
    ),
    Python: form(
      { 'app.py': `${GOOD_PYTHON}config = {"concurrency": 0}\n` },
      `${HERE}/app.py:2: \`config\`: concurrency must be a whole number from 1 to 128`,
    ),
  },
  {
    what: 'calls at the same time and in batches',
    TypeScript: form(
      { 'app.mjs': `${GOOD}\nexport const config = { concurrency: 8, batchSize: 4 };` },
      `${HERE}/app.mjs: config.concurrency is 8 and config.batchSize is 4, but calls run either at the same time or in batches. Set --concurrency 1 or a batch size of 1.`,
    ),
    Python: form(
      { 'app.py': `async ${GOOD_PYTHON}config = {"concurrency": 8, "batch_size": 4}\n` },
      `${HERE}/app.py: config.concurrency is 8 and config.batchSize is 4, but calls run either at the same time or in batches. Set --concurrency 1 or a batch size of 1.`,
    ),
  },
  {
    what: 'calls of a service at the same time',
    isLoaders: true,
    TypeScript: form(
      {
        'app.mjs':
          'export class Service {\n  handle(data) {\n    return data;\n  }\n}\nexport const config = { concurrency: 2 };',
      },
      `${HERE}/app.mjs:6: export \`config\`: a custom service runs its calls in batches, never at the same time; remove concurrency and set batchSize`,
    ),
    Python: form(
      {
        'app.py':
          'class Service:\n    def handle(self, data, context):\n        return data\nconfig = {"concurrency": 2}\n',
      },
      `${HERE}/app.py:4: \`config\`: a custom service runs its calls in batches, never at the same time; remove concurrency and set batchSize`,
    ),
  },
  {
    what: 'a plain function whose calls are to run at the same time',
    isLoaders: true,
    TypeScript: none('a function may return a promise without being declared async'),
    Python: form(
      { 'app.py': `config = {"concurrency": 2}\n${GOOD_PYTHON}` },
      `${HERE}/app.py:2: \`inference\` is a plain \`def\`, and no other call of its worker runs while it does. With \`concurrency\` above 1 make it an \`async def\` that awaits what it waits for, or remove \`concurrency\` from \`config\``,
    ),
  },
];

/** Bounded: each of them is one process that ends by itself. */
const RUNS = { concurrency: 2, timeout: 300_000 };

/** Frames of the worker, of the server and of the loader, in either language. */
const OUR_FRAMES = /^\s+at .*(?:node:|dist\/(?:front|worker|supervisor)|tsx)|File ".*banana_worker/m;

/** Starts with the time that each record of the log begins with. */
const RECORD = /^(?=\[\d\d:\d\d:\d\d\.\d{3}\] )/m;

interface Made extends Form {
  readonly what: string;
  /** Number of starts that the server tries. */
  readonly tries: number;
  readonly name: string;
  readonly folder: string;
}

/** The mistakes that can be made in this language, each written into a folder of its own, under the name of a model. */
function write(t: TestContext, language: Language, mistakes: readonly Mistake[]): Made[] {
  return mistakes.flatMap(({ what, proof, [language]: made }, i) => {
    if ('because' in made) return [];
    const tries = proof === 'the same twice' ? 2 : 1;
    return [{ ...made, what, tries, name: `model${i}`, folder: appFolder(t, made.files) }];
  });
}

/** The fields of a line stand behind its first line, where a message has several. */
function withoutFields(log: string): string {
  return log.replace(/ \{"[^\n]*\}$/gm, '');
}

/** The records of the log about this model, with its folder as `<here>`. */
function logOf(stderr: string, { name, folder }: Made): string {
  const records = stderr.split(RECORD).filter((record) => new RegExp(`\\b${name}\\b`).test(record));
  return withoutFields(records.join('')).replaceAll(folder, HERE);
}

/** Reads paths of apps, and prints the errors with which a worker's loader refuses them, each in a process of its own. */
const PYTHON_LOADER = `
import json, os, sys, test_load_app
said = []
for path in sys.argv[1:]:
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        os.write(write_end, json.dumps(test_load_app.loaded(path).get("error")).encode())
        os._exit(0)
    os.close(write_end)
    with open(read_end, "rb") as told:
        said.append(json.loads(told.read()))
    os.wait()
print(json.dumps(said))
`;

async function printedBy(file: string, args: readonly string[], env: object = {}): Promise<unknown[]> {
  const { stdout } = await promisify(execFile)(file, args, { env: { ...process.env, ...env } });
  return JSON.parse(stdout) as unknown[];
}

/** The errors with which the loader of each language refuses apps. Types are taken out by a loader that cannot be unloaded. */
const LOADERS: Readonly<Record<Language, (paths: readonly string[]) => Promise<readonly unknown[]>>> = {
  TypeScript: async (paths) => {
    const probe = fileURLToPath(new URL('../processes/worker/load-app-probe.js', import.meta.url));
    const groups = [true, false].map((isTyped) => paths.filter((path) => path.endsWith('ts') === isTyped));
    const outcomes = await Promise.all(groups.map((group) => printedBy(process.execPath, [probe, ...group])));
    const said = new Map(
      groups.flat().map((path, i) => [path, (outcomes.flat()[i] as { message?: string }).message] as const),
    );
    return paths.map((path) => said.get(path));
  },
  Python: (paths) => {
    const places = [`${ROOT}worker/python`, `${ROOT}test/python`].join(delimiter);
    return printedBy('python3', ['-B', '-c', PYTHON_LOADER, ...paths], { PYTHONPATH: places });
  },
};

const pathOf = ({ folder, files }: Made): string => join(folder, Object.keys(files)[0] as string);

withEachRuntime(({ language }) => {
  test('the loader of a worker refuses, with the reason where to look, an app with', RUNS, async (t) => {
    const made = write(
      t,
      language,
      MISTAKES.filter(({ isLoaders }) => isLoaders === true),
    );
    const said = await LOADERS[language](made.map(pathOf));
    for (const [i, { what, says, folder }] of made.entries())
      await t.test(what, () => {
        const told = String(said[i]).replaceAll(folder, HERE);
        assert.equal(told.split(says).length - 1, 1, told);
        assert.doesNotMatch(told, OUR_FRAMES, 'frames of the app alone');
      });
  });

  for (const [condition, args, mistakes] of [
    [
      'each an app with',
      [],
      MISTAKES.filter(({ proof, isLoaders }) => proof !== 'none: it may pass' && isLoaders !== true),
    ],
    [
      'each an app with, and --restart-limit 0,',
      ['--restart-limit', '0'],
      MISTAKES.filter(({ proof }) => proof === 'none: it may pass'),
    ],
  ] as const) {
    test(
      `a server of models, ${condition} a mistake: exit code 3, and reasons in the log`,
      RUNS,
      async (t) => {
        const made = write(t, language, mistakes);
        const models = made.flatMap((mistake) => ['--model', `${mistake.name}=${pathOf(mistake)}`]);
        const command = runCommand([...models, ...args, '--port', '0', '--host', '127.0.0.1'], { t });
        const { code } = await command.ended;
        assert.equal(code, 3);
        assert.equal(command.stdout(), '');
        for (const mistake of made)
          await t.test(`${mistake.what}: the reason where to look`, () => {
            const told = logOf(command.stderr(), mistake);
            const times = told.split(mistake.says).length - 1;
            assert.ok(times >= 1 && times <= mistake.tries, `once a try: ${told}`);
            assert.equal(told.match(/; restarting in /g)?.length ?? 0, mistake.tries - 1, told);
            assert.match(told, /; it will not be restarted: /);
            assert.match(told, new RegExp(`${mistake.name}: no worker could start; see the error above`));
            assert.doesNotMatch(told, /[^.][?.][.;](?!\.)/, 'nothing is joined to a sentence that has ended');
            assert.doesNotMatch(told, OUR_FRAMES, 'frames of the app alone');
          });
      },
    );
  }
});

/** The front prints reasons; it knows no language. */
withOneRuntime(({ language }) => {
  test(
    'one app with a mistake: exit code 3, and the reason is printed once, not again at the end of the server',
    RUNS,
    async (t) => {
      const [{ files, says, folder }] = write(t, language, MISTAKES.slice(0, 1)) as [Made];
      const args = ['--port', '0', '--host', '127.0.0.1'];
      const command = runCommand([Object.keys(files)[0] as string, ...args], { t, cwd: folder });
      assert.equal((await command.ended).code, 3);
      const told = withoutFields(command.stderr()).replaceAll(folder, HERE);
      assert.equal(told.split(says).length - 1, 1, told);
      assert.match(
        told,
        /; it will not be restarted: [^]*\n[^]*no worker could start; see the error above\n/,
      );
      assert.equal(command.stdout(), '');
    },
  );
});

const UNREADABLE: readonly Mistake[] = [
  {
    what: 'app',
    TypeScript: form(
      { 'app.ts': GOOD },
      `${HERE}/app.ts: the file cannot be read: the server's user has no permission for it.`,
    ),
    Python: form(
      { 'app.py': GOOD_PYTHON },
      `${HERE}/app.py: the file cannot be read: the server's user has no permission for it.`,
    ),
  },
  {
    what: 'helper',
    TypeScript: form(
      { 'app.ts': `import './helper.ts';\n${GOOD}`, 'helper.ts': '' },
      /<here>\/app\.ts:1:8: importing the app threw: Error: EACCES: [^\n]*'<here>\/helper\.ts'/,
    ),
    Python: form(
      { 'app.py': `import helper\n${GOOD_PYTHON}`, 'helper.py': '' },
      /<here>\/app\.py:1: importing the app raised:[^]*?PermissionError: [^\n]*'<here>\/helper\.py'/,
    ),
  },
];

withEachRuntime(({ language }) => {
  test(
    'apps whose own file, or another of theirs, may not be read end the start with an error about it',
    { ...RUNS, skip: needs(...BOUND_BY_MODES) },
    async (t) => {
      const made = write(t, language, UNREADABLE);
      const models = made.flatMap(({ name, folder, files }) => {
        const [app = '', ...beside] = Object.keys(files);
        chmodSync(join(folder, beside[0] ?? app), 0);
        return ['--model', `${name}=${join(folder, app)}`];
      });
      const args = [...models, '--port', '0', '--host', '127.0.0.1'];
      const command = runCommand(args, { t, command: boundByModes(appFolder(t, {})) });
      assert.equal((await command.ended).code, 3);
      for (const mistake of made)
        await t.test(`the ${mistake.what}`, () => {
          const told = logOf(command.stderr(), mistake);
          assert.ok(told.split(mistake.says).length > 1, told);
        });
    },
  );
});

/** `findApp` is tested with every such path in test/supervisor/plan/app-path.test.ts. */
test('a path that is no app: exit code 2, nothing is started', RUNS, async (t) => {
  const cwd = appFolder(t, { 'app.ts': GOOD });
  const command = runCommand(['ap.ts', '--port', '0'], { t, cwd });
  const { code } = await command.ended;
  assert.equal(command.stderr(), 'banana-serve: ap.ts: no such file. Did you mean app.ts?\n');
  assert.equal(code, 2);
});
