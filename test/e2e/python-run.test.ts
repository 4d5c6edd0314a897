/** How an app in Python is found and started: by which interpreter, where, with what in its environment, and again when it changes. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { editedApp, type EditedApp } from '../helpers/edited-app.js';
import { needs } from '../helpers/needs.js';
import { call, runCommand, startServer, type Server } from '../helpers/server.js';

const OPTIONS = { timeout: 60_000, skip: needs('python3') };

/** The environment that whoever runs the tests may have active. */
const NO_ENVIRONMENT = { VIRTUAL_ENV: undefined, CONDA_PREFIX: undefined, BANANA_PYTHON: undefined };

const TELLS = `
import os, sys

def inference(model_inputs):
    threads = [os.environ.get(name) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")]
    return {"executable": sys.executable, "prefix": sys.prefix, "argv": sys.argv, "cwd": os.getcwd(), "threads": threads}
`;

interface Told {
  readonly executable: string;
  readonly prefix: string;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly threads: readonly (string | null)[];
}

async function told(server: Pick<Server, 'url'>, path = ''): Promise<Told> {
  const answer = await call(server.url + path, '{}');
  assert.equal(answer.status, 200, answer.text);
  return answer.json();
}

/** An environment without pip, which is made at once; resolves with the path of its interpreter. */
function makeEnvironment(app: EditedApp, name: string): string {
  execFileSync('python3', ['-m', 'venv', '--without-pip', app.path(name)]);
  return app.path(`${name}/bin/python`);
}

interface Named {
  readonly runtime: string;
  readonly interpreter: { readonly path: string; readonly version: string } | null;
}

describe('an app in Python', OPTIONS, () => {
  test('is found as app.py, runs in the .venv beside it, and the banner and /status name its interpreter', async (t) => {
    const app = editedApp(t, { 'app.py': `import beside\n${TELLS}` });
    const interpreter = makeEnvironment(app, '.venv');
    const [lib = ''] = readdirSync(app.path('.venv/lib'));
    writeFileSync(app.path(join('.venv/lib', lib, 'site-packages/beside.py')), '');
    const server = await startServer(null, {
      t,
      cwd: app.folder,
      env: NO_ENVIRONMENT,
      args: ['--gpus', 'none'],
    });
    const { executable, prefix, argv, cwd } = await told(server);
    assert.deepEqual([executable, prefix, cwd], [interpreter, app.path('.venv'), app.folder]);
    assert.deepEqual(argv, [app.path('app.py')]);
    const { runtime, interpreter: named } = (await server.status()).model as unknown as Named;
    assert.deepEqual([runtime, named?.path], ['python', interpreter]);
    const version = named?.version as string;
    assert.match(version, /^3\.\d+\.\d+$/);
    assert.ok(server.stderr().includes(`serves app.py (python ${version}, .venv/bin/python) with 1 worker`));
    assert.equal((await server.stop()).code, 0);
  });

  test('has an interpreter of its own where several models are served, and its share of the cores', async (t) => {
    const app = editedApp(t, { 'a.py': TELLS, 'b.py': TELLS, 'sub/keep': '' });
    const given = makeEnvironment(app, 'given');
    app.save('banana.json', JSON.stringify({ models: { b: { app: './b.py', python: 'given/bin/python' } } }));
    const active = makeEnvironment(app, 'active');
    const env = { ...NO_ENVIRONMENT, VIRTUAL_ENV: app.path('active'), MKL_NUM_THREADS: '7' };
    const server = await startServer('./a.py', { t, cwd: app.folder, env, args: ['--gpus', 'none'] });
    const [a, b] = [await told(server), await told(server, '/models/b/')];
    assert.deepEqual([a.executable, b.executable], [active, given]);
    const share = /\((\d+) threads? each\)/.exec(server.stderr())?.[1];
    assert.deepEqual(a.threads, [share, '7', share]);
    assert.equal((await server.stop()).code, 0);
  });

  test('starts again with --watch when a module that it imports changes, and not for what Python caches', async (t) => {
    const app = editedApp(t, {
      'app.py': 'from lib.answer import ANSWER\n\ndef inference(model_inputs):\n    return ANSWER\n',
      'lib/__init__.py': '',
      'lib/answer.py': 'ANSWER = 1\n',
    });
    const server = await startServer(app.path('app.py'), { t, env: NO_ENVIRONMENT, args: ['--watch'] });
    assert.equal((await call(server.url, '{}')).text, '1');
    app.save('lib/__pycache__/other.py', '');
    app.save('lib/answer.py', 'ANSWER = 22\n');
    await server.untilPrinted('lib/answer.py changed: starting the workers again');
    assert.equal((await call(server.url, '{}')).text, '22');
    assert.equal(server.stderr().split(' changed: ').length, 2, server.stderr());
    await server.stop();
  });

  test('ends the start in one line that lists what was tried where there is no Python, or an old one', async (t) => {
    const app = editedApp(t, {
      'app.py': TELLS,
      'bin/python3': '#!/bin/sh\nprintf "3.7.16\\n/usr/bin/python3.7"\n',
    });
    execFileSync('chmod', ['+x', app.path('bin/python3')]);
    const refusal = async (
      env: Readonly<Record<string, string>>,
      args: readonly string[] = [],
    ): Promise<string> => {
      const command = runCommand(['app.py', ...args], {
        t,
        cwd: app.folder,
        env: { ...NO_ENVIRONMENT, ...env },
      });
      assert.equal((await command.ended).code, 2, command.stderr());
      return command.stderr().replaceAll(`${app.folder}/`, '').replace(app.folder, '.');
    };
    assert.equal(
      await refusal({ PATH: '/nowhere' }),
      'banana-serve: app.py: it needs Python 3.8 or newer, and none was found. Tried: .venv and venv in . and above, python3 in PATH, python in PATH. Install one, or name it: --python /path/to/python3.\n',
    );
    assert.match(
      await refusal({ PATH: `${app.path('bin')}:/bin` }),
      /^banana-serve: app\.py: it needs Python 3\.8 or newer, and bin\/python3 \(python3 in PATH\) is Python 3\.7\.16\. Tried: .*\n$/,
    );
    assert.match(
      await refusal({ BANANA_PYTHON: './gone' }),
      /^banana-serve: app\.py: .*, and there is no \.\/gone \(BANANA_PYTHON\)\. Name another, .*\n$/,
    );
    assert.match(await refusal({}, ['--python', './app.py']), / app\.py .*cannot be run: .*\n$/);
  });
});

test('banana-serve --python-path prints the folder of what apps import', OPTIONS, async () => {
  const command = runCommand(['--python-path']);
  assert.equal((await command.ended).code, 0, command.stderr());
  const names = 'import banana_worker, mms, potassium, ts; print(potassium.__file__)';
  const env = { ...process.env, PYTHONPATH: command.stdout().trim() };
  const file = execFileSync('python3', ['-B', '-c', names], { env, encoding: 'utf8' });
  assert.equal(file.trim(), join(command.stdout().trim(), 'potassium/__init__.py'));
});
