/** Every mistake in an app in Python is told once, with file, line, cause and cure; what may pass is tried again. */
import assert from 'node:assert/strict';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { BOUND_BY_MODES, boundByModes } from '../helpers/bound-by-modes.js';
import { needs } from '../helpers/needs.js';
import { call, runCommand, startServer } from '../helpers/server.js';
import { appFolder } from '../worker/app-folder.js';

const HERE = '<here>';
const GOOD = 'def inference(model_inputs): return 1\n';

interface Mistake {
  readonly what: string;
  readonly files: Readonly<Record<string, string>>;
  readonly says: RegExp;
}

const LATCHED: readonly Mistake[] = [
  {
    what: 'a syntax error',
    files: { 'app.py': 'def inference(x):\n    return (x\n' },
    says: /<here>\/app\.py:\d: syntax error: .* \(Python 3\.\d+\.\d+, \/.*\)\./,
  },
  {
    what: 'a wrong indent in a file beside it',
    files: { 'app.py': `import helper\n${GOOD}`, 'helper.py': 'a = 1\n  b = 2\n' },
    says: /<here>\/helper\.py:2: syntax error: unexpected indent: `b = 2`/,
  },
  {
    what: 'a package that is not installed',
    files: { 'app.py': `# comment\nimport surely_missing\n${GOOD}` },
    says: /<here>\/app\.py:2: cannot import "surely_missing": the package is not installed\. Run: \/\S+ -m pip install surely_missing\nThe interpreter is \/\S+ \(Python 3/,
  },
  {
    what: 'a package that its requirements name',
    files: {
      'app.py': `import surely_missing.part\n${GOOD}`,
      'requirements.txt': 'torch\nsurely-missing==1\n',
    },
    says: /<here>\/app\.py:1: .* -m pip install -r <here>\/requirements\.txt\n/,
  },
  {
    what: 'a package that is imported under another name than it is installed',
    files: { 'app.py': `import umap\n${GOOD}` },
    says: /-m pip install umap-learn\n/,
  },
  {
    what: 'no inference',
    files: { 'app.py': 'x = 1\n\ndef predict(model_inputs): pass\n' },
    says: /<here>\/app\.py:3: app\.py has no function `inference`\. It has: x, predict\. Rename `predict` to `inference`\./,
  },
  {
    what: 'an inference behind a guard',
    files: { 'app.py': 'if __name__ == "__main__":\n    def inference(x): return x\n' },
    says: /<here>\/app\.py:2: `inference` stands behind an `if` that is false in a worker/,
  },
  {
    what: 'an inference of the wrong kind',
    files: { 'app.py': '\ninference = 5\n' },
    says: /<here>\/app\.py:2: `inference` is an int; make it a function/,
  },
  {
    what: 'a Potassium that only a function makes',
    files: {
      'app.py':
        'from potassium import Potassium, Request, Response\n\ndef create_app():\n    return Potassium("made")\n',
    },
    says: /<here>\/app\.py:4: app\.py is a Potassium app, and no name of the module is a `Potassium`: one in a function, a list or a dict is not found\. Write `app = \.\.\.` at the top level of the file, such as `app = create_app\(\)`\./,
  },
  {
    what: 'a Potassium in a dict',
    files: { 'app.py': 'import potassium\napps = {"one": potassium.Potassium("one")}\n' },
    says: /<here>\/app\.py:2: app\.py is a Potassium app, and no name of the module is a `Potassium`/,
  },
  {
    what: 'no inference but in a package that it imports from',
    files: {
      'app.py': 'from json import loads as run\nfrom helper import predict\nsize = 1\n',
      'helper.py': 'def predict(x): return x\n',
    },
    says: /<here>\/app\.py:1: app\.py has no function `inference`\. It has: size\. Add `def inference\(model_inputs\): \.\.\.`\./,
  },
  {
    what: 'two Potassium apps, neither of them served',
    files: {
      'app.py':
        'from potassium import Potassium\nother = Potassium("two")\napp = Potassium("one")\nsame = app\n',
    },
    says: /<here>\/app\.py:2: `other` and `app` are Potassium apps, and a file serves one: call `serve\(\)` on that one, outside of `if __name__ == "__main__":`, or delete the others/,
  },
  {
    what: 'an init of the wrong kind',
    files: { 'app.py': `${GOOD}init = "load"\n` },
    says: /<here>\/app\.py:2: `init` is a str; make it a function/,
  },
  {
    what: 'an init that is a generator',
    files: { 'app.py': `${GOOD}def init():\n    yield\n` },
    says: /<here>\/app\.py:2: `init` is a generator, since it has a `yield`: what stands in it would not run\. Take the `yield` out/,
  },
  {
    what: 'a Potassium whose init is an async generator',
    files: {
      'app.py':
        'from potassium import Potassium\napp = Potassium("x")\n\n@app.init\nasync def load():\n    yield {}\n',
    },
    says: /<here>\/app\.py:5: `load` is a generator, since it has a `yield`: what stands in it would not run\. Take the `yield` out/,
  },
  {
    what: 'a wish in its config that is no yes or no',
    files: { 'app.py': `${GOOD}config = {"forms": "yes"}\n` },
    says: /<here>\/app\.py.*forms must be True or False/,
  },
  {
    what: "an option of the server's in its config",
    files: { 'app.py': `${GOOD}config = {"port": 9000, "queueSize": 1}\n` },
    says: /<here>\/app\.py: config\.port: this option belongs to the server, not to a model\./,
  },
  {
    what: 'a bad value in its config',
    files: { 'app.py': `${GOOD}config = {"runTimeout": "soon"}\n` },
    says: /<here>\/app\.py: config\.runTimeout: "soon" is not allowed; give a duration with a unit/,
  },
  {
    what: 'a mistyped option in its config',
    files: { 'app.py': `${GOOD}config = {"run_timeout": "3s", "queue_sise": 1}\n` },
    says: /config\.queueSise: there is no such option\. Did you mean queueSize\?/,
  },
  {
    what: 'an import that raises, twice the same',
    files: { 'app.py': `def load():\n    raise ValueError("no licence")\n\nload()\n${GOOD}` },
    says: /<here>\/app\.py:2: importing the app raised:\nTraceback[^]*ValueError: no licence/,
  },
  {
    what: 'an init that raises, twice the same',
    files: { 'app.py': `def init():\n    raise ValueError("no weights")\n${GOOD}` },
    says: /<here>\/app\.py:2: init raised:/,
  },
  {
    what: 'an example that fails',
    files: { 'app.py': 'example = {"prompt": 1}\ndef inference(x): return x["text"]\n' },
    says: /<here>\/app\.py:2: the example call raised:/,
  },
];

/** Bounded: each of them is one process that ends by itself. */
const RUNS = { concurrency: 2, timeout: 60_000, skip: needs('python3') };

describe('a Python app with', RUNS, () => {
  for (const { what, files, says } of LATCHED) {
    test(`${what}: exit code 3, and the reason where to look`, async (t) => {
      const cwd = appFolder(t, files);
      const command = runCommand(['app.py', '--port', '0', '--host', '127.0.0.1'], { t, cwd });
      const { code } = await command.ended;
      const told = command.stderr().replaceAll(cwd, HERE);
      assert.match(told, says);
      assert.match(told, /; it will not be restarted: [^]*no worker could start; the reason stands above\n/);
      assert.doesNotMatch(told, /File ".*banana_worker/, 'frames of the app alone');
      assert.equal(code, 3);
      assert.equal(command.stdout(), '');
    });
  }
});

for (const [file, says] of [
  ['app.py', /<here>\/app\.py: the file cannot be read: the server's user has no permission for it\./],
  [
    'helper.py',
    /<here>\/app\.py:1: importing the app raised:[^]*PermissionError: [^\n]*'<here>\/helper\.py'/,
  ],
] as const)
  test(
    `a Python app whose ${file} may not be read says so, and ends the start`,
    { timeout: 60_000, skip: needs('python3', ...BOUND_BY_MODES) },
    async (t) => {
      const cwd = appFolder(t, { 'app.py': `import helper\n${GOOD}`, 'helper.py': '' });
      chmodSync(join(cwd, file), 0);
      const args = ['app.py', '--port', '0', '--host', '127.0.0.1'];
      const command = runCommand(args, { t, cwd, command: boundByModes(appFolder(t, {})) });
      assert.equal((await command.ended).code, 3);
      assert.match(command.stderr().replaceAll(cwd, HERE), says);
    },
  );

test(
  'an import that takes nearly as long as --init-timeout says where it is',
  { timeout: 60_000, skip: needs('python3') },
  async (t) => {
    const source = `import os, time\nwhile not os.path.exists("there"):\n    time.sleep(0.01)\n${GOOD}`;
    const cwd = appFolder(t, { 'app.py': source });
    const server = await startServer('app.py', { t, cwd, args: ['--init-timeout', '12s'] });
    await server.untilPrinted(
      /WARN: not ready yet, with \d\.\d s left \(--init-timeout\): it is at \S+app\.py:[23] .*"worker":0/,
    );
    writeFileSync(join(cwd, 'there'), '');
    assert.equal((await call(server.url, '{}')).text, '1');
    await server.stop('SIGINT', (await server.status()).model.workers[0]?.restarts ?? 0);
  },
);

test(
  'a start that hangs in native code is told with its line in the error of --init-timeout',
  { timeout: 60_000, skip: needs('python3') },
  async (t) => {
    const source = `import ctypes\ndef init():\n    ctypes.PyDLL(None).sleep(1000)\n${GOOD}`;
    const cwd = appFolder(t, { 'app.py': source });
    const server = await startServer('app.py', {
      t,
      cwd,
      args: ['--init-timeout', '8s'],
      expectedRestarts: 1,
    });
    await server.untilPrinted(
      /not ready within 8 s \(--init-timeout\), still running init[^\n]*\. It hung at \S+app\.py:3, while native code held the GIL\. Load less/,
    );
    await server.stop('SIGINT', (await server.status()).model.workers[0]?.restarts ?? 0);
  },
);

test(
  'an import that the network or a resource failed, or that exits, is tried again',
  { timeout: 60_000, skip: needs('python3') },
  async (t) => {
    for (const [cause, said] of [
      ['raise ConnectionRefusedError(111, "refused")', /app\.py:3: importing the app raised:/],
      [
        'sys.exit("no weights yet")',
        /app\.py:3: importing the app called sys\.exit and said: no weights yet\./,
      ],
    ] as const) {
      const cwd = appFolder(t, {
        'app.py': `import os, sys\nif not os.path.exists("there"):\n    ${cause}\n${GOOD}`,
      });
      const server = await startServer('app.py', { t, cwd, expectedRestarts: 2 });
      await server.until(({ model }) => model.workers[0]?.restarts === 2);
      writeFileSync(join(cwd, 'there'), '');
      assert.equal((await call(server.url, '{}')).text, '1');
      assert.match(server.stderr(), said);
      await server.stop('SIGINT', (await server.status()).model.workers[0]?.restarts ?? 0);
    }
  },
);

test(
  '--expose-errors shows a traceback that begins in the app',
  { timeout: 60_000, skip: needs('python3') },
  async (t) => {
    const cwd = appFolder(t, { 'app.py': 'def inference(x):\n    return 1 / 0\n' });
    const server = await startServer('app.py', { t, cwd, args: ['--expose-errors'] });
    const answer = await call(server.url, '{}');
    assert.equal(answer.status, 500);
    assert.match(
      answer.text,
      /^Traceback \(most recent call last\):\n {2}File ".*app\.py", line 2, in inference\n/,
    );
    assert.match(answer.text, /ZeroDivisionError: division by zero$/);
    await server.stop();
  },
);

const LOST_DESCRIPTORS = [
  ['os.close(3)', /the app has closed file descriptor 3, through which it speaks/],
  ['os.close(4)', /the app has closed file descriptor 4, through which it speaks/],
  ['os.dup2(os.open("/dev/null", os.O_RDWR), 3)', /closed file descriptor 3 or put another file over it/],
  [
    'os.dup2(os.open("/dev/null", os.O_RDWR), 4)',
    /the app has put another file over file descriptor 4, through/,
  ],
  [
    'os.dup2(os.open("app.py", os.O_RDONLY), 4)',
    /the app has put another file over file descriptor 4, through/,
  ],
] as const;

test(
  'an app that closes the descriptors of its worker, or puts files over them, is told so, and another worker serves',
  { timeout: 60_000, skip: needs('python3') },
  async (t) => {
    const cwd = appFolder(t, {
      'app.py': `import os
def inference(act):
    if act is not None:
        exec(act)
    return os.getpid()
`,
    });
    const server = await startServer('app.py', { t, cwd, expectedRestarts: LOST_DESCRIPTORS.length });
    for (const [act, told] of LOST_DESCRIPTORS) {
      const before = (await call(server.url, 'null')).text;
      await call(server.url, JSON.stringify(act));
      await server.until(({ model }) => model.workers[0]?.state === 'idle');
      assert.notEqual((await call(server.url, 'null')).text, before);
      assert.match(server.stderr(), told);
    }
    assert.doesNotMatch(server.stderr(), /SIGKILL|broke the protocol/);
    await server.stop();
  },
);
