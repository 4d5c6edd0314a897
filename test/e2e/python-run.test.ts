/** Starting an app in Python: its interpreter, its folder and its environment. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, lstatSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { tgzOf, zipOf, type PackedEntry } from '../helpers/archives.js';
import { BOUND_BY_MODES, boundByModes } from '../helpers/bound-by-modes.js';
import { editedApp, type EditedApp } from '../helpers/edited-app.js';
import { startManagedCommand } from '../helpers/managed-command.js';
import { needs } from '../helpers/needs.js';
import { startHere } from '../helpers/here.js';
import { call, eventually, isAlive, runCommand, startServer, type Server } from '../helpers/server.js';
import { appFolder } from '../worker/app-folder.js';

const OPTIONS = { timeout: 240_000, skip: needs('python3') };

/** The Python environment that may be active where the tests run. */
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
  test('that keeps a pool of processes ends by itself when the server stops', async (t) => {
    const app = editedApp(t, {
      'app.py': `
from concurrent.futures import ProcessPoolExecutor

def double(number):
    return 2 * number

def init():
    global pool
    pool = ProcessPoolExecutor(2)

def inference(numbers):
    return list(pool.map(double, numbers))
`,
    });
    const server = await startHere('app.py', { t, cwd: app.folder });
    assert.equal((await call(server.url, '[1, 2]')).text, '[2,4]');
    await server.stop('SIGTERM');
    assert.match(server.stderr(), /worker 0 has stopped \(exit code 0\)/);
  });

  test('an app whose folder is on PYTHONPATH may have files with the names of standard modules', async (t) => {
    const shadow = 'raise RuntimeError("not the standard one")\n';
    const app = editedApp(t, {
      'json.py': 'def inference(model_inputs): return __name__\n',
      'threading.py': shadow,
      'struct.py': shadow,
      'faulthandler.py': shadow,
    });
    const server = await startHere('json.py', { t, cwd: app.folder, env: { PYTHONPATH: '.' } });
    assert.equal((await call(server.url, '{}')).text, '"__mp_main__"');
    await server.stop();
  });

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
    const server = await startHere('./a.py', { t, cwd: app.folder, env, args: ['--gpus', 'none'] });
    const [a, b] = [await told(server), await told(server, '/models/b/')];
    assert.deepEqual([a.executable, b.executable], [active, given]);
    const share = /\((\d+) threads? each\)/.exec(server.stderr())?.[1];
    assert.deepEqual(a.threads, [share, '7', share]);
    assert.equal((await server.stop()).code, 0);
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

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  test(
    `${signal} ends a start whose interpreter does not answer, and all that this has started`,
    OPTIONS,
    async (t) => {
      const app = editedApp(t, { 'app.py': TELLS });
      app.save('python', '#!/bin/sh\nsleep 1000 &\necho $! > pid.new\nmv pid.new pid\nwait\n');
      chmodSync(app.path('python'), 0o755);
      const command = runCommand(['app.py', '--python', './python'], { t, cwd: app.folder });
      await eventually(
        () => existsSync(app.path('pid')),
        60_000,
        () => command.stderr(),
      );
      const signalledAtMs = performance.now();
      command.process.kill(signal);
      assert.deepEqual(await command.ended, { code: 0, signal: null });
      const tookMs = performance.now() - signalledAtMs;
      assert.ok(tookMs < 9000, `${tookMs} ms, and the question's limit is 10 s`);
      assert.equal(command.stderr(), 'banana-serve: stopped before it had started.\n');
      const pid = Number(readFileSync(app.path('pid'), 'utf8'));
      await eventually(
        () => !isAlive(pid),
        60_000,
        () => 'what it has started is left',
      );
    },
  );

describe('an app in Python, and what is around it', OPTIONS, () => {
  test(
    'is served from read-only folders, and leaves nothing in them or in its environment',
    { skip: needs(...BOUND_BY_MODES) },
    async (t) => {
      const app = editedApp(t, { 'app/app.py': `import lib.names\n${TELLS}`, 'app/lib/names.py': '' });
      makeEnvironment(app, 'app/.venv');
      const tools = appFolder(t, {});
      const files = (): string[] => readdirSync(app.folder, { recursive: true, encoding: 'utf8' }).sort();
      const before = files();
      setModes(app.folder, before, false);
      try {
        const options = { cwd: app.path('app'), env: NO_ENVIRONMENT, command: boundByModes(tools) };
        const server = await startServer('./app.py', { t, ...options });
        assert.equal((await told(server)).prefix, app.path('app/.venv'));
        assert.equal((await server.stop()).code, 0);
        assert.deepEqual(files(), before);
      } finally {
        setModes(app.folder, before, true); // or it could not be removed
      }
    },
  );

  test('adds no files to its folder but the bytecode of the modules that it imports', async (t) => {
    const app = editedApp(t, { 'app.py': `import names\n${TELLS}`, 'names.py': '' });
    makeEnvironment(app, '.venv');
    const files = (): string[] => readdirSync(app.folder, { recursive: true, encoding: 'utf8' });
    const before = files();
    const server = await startHere('./app.py', {
      t,
      cwd: app.folder,
      env: { ...NO_ENVIRONMENT, PYTHONDONTWRITEBYTECODE: undefined, PYTHONPYCACHEPREFIX: undefined },
    });
    await told(server);
    assert.equal((await server.stop()).code, 0);
    const added = files().filter((file) => !before.includes(file));
    assert.match(added.sort().join(' '), /^__pycache__ __pycache__\/names\.cpython-3\d+\.pyc$/);
  });

  test('asks a shim once which interpreter it stands for, and workers do not pass it', async (t) => {
    const app = editedApp(t, { 'app.py': TELLS, asked: '' });
    const interpreter = makeEnvironment(app, 'real');
    app.save('bin/python3', `#!/bin/sh\necho >> '${app.path('asked')}'\nexec '${interpreter}' "$@"\n`);
    chmodSync(app.path('bin/python3'), 0o755);
    const env = { ...NO_ENVIRONMENT, PATH: `${app.path('bin')}:${process.env['PATH'] ?? ''}` };
    const args = ['--workers', '2'];
    const server = await startHere('./app.py', { t, cwd: app.folder, env, args, expectedRestarts: 1 });
    const { model } = await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
    process.kill(model.workers[0]?.pid as number, 'SIGKILL');
    await server.until(({ model: { workers } }) =>
      workers.every(({ state, restarts, index }) => state === 'idle' && restarts === (index === 0 ? 1 : 0)),
    );
    assert.equal((await told(server)).executable, interpreter);
    assert.equal(readFileSync(app.path('asked'), 'utf8'), '\n');
    await server.stop();
  });

  for (const [file, pack] of [
    ['model.mar', zipOf],
    ['model.tar.gz', (entries: readonly PackedEntry[]) => Promise.resolve(tgzOf(entries))],
  ] as const)
    test(`never runs an interpreter that came with it in an archive (${file})`, async (t) => {
      const place = appFolder(t, {});
      const planted = `#!/bin/sh\ntouch '${place}/ran'\nexec python3 "$@"\n`;
      const environments = ['.venv/bin/python', 'venv/bin/python', '.venv/bin/python3'];
      const entries: PackedEntry[] = [
        { name: 'MAR-INF/MANIFEST.json', content: JSON.stringify(MANIFEST) },
        { name: 'service.py', content: SERVICE },
        ...environments.map((name) => ({ name, content: planted, mode: 0o100755 })),
      ];
      writeFileSync(join(place, file), await pack(entries));
      const { server, management } = await startManagedCommand(t, { env: NO_ENVIRONMENT }, place);
      assert.equal(await management.said(`POST /models?url=${file}&initial_workers=1`), '200 Workers scaled');
      const { dir, planted: isThere, executable } = (await management.infer('planted')).json<Found>();
      assert.ok(isThere, 'it was unpacked');
      assert.ok(!executable.startsWith(dir));
      assert.deepEqual(readdirSync(place), [file], 'it did not run');
      await server.stop();
    });
});

const MANIFEST = { runtime: 'python', model: { modelName: 'planted', handler: 'service.py:handle' } };

interface Found {
  readonly dir: string;
  readonly planted: boolean;
  readonly executable: string;
}

const SERVICE = `
import os, sys

def handle(data, context):
    folder = context.system_properties["model_dir"]
    found = {"dir": folder, "planted": os.access(os.path.join(folder, ".venv/bin/python"), os.F_OK)}
    return None if data is None else [dict(found, executable=sys.executable) for _ in data]
`;

/** The folders of these files, and the files: may be written to by their owner, or by no user. */
function setModes(folder: string, files: readonly string[], isWritable: boolean): void {
  for (const path of [folder, ...files.map((file) => join(folder, file))]) {
    const entry = lstatSync(path);
    const writable = isWritable ? 0o200 : 0;
    if (!entry.isSymbolicLink()) chmodSync(path, (entry.mode & 0o555) | writable);
  }
}

test('banana-serve --python-path prints the folder of what apps import', OPTIONS, async () => {
  const command = runCommand(['--python-path']);
  assert.equal((await command.ended).code, 0, command.stderr());
  const names = 'import banana_worker, mms, potassium, ts; print(potassium.__file__)';
  const env = { ...process.env, PYTHONPATH: command.stdout().trim() };
  const file = execFileSync('python3', ['-B', '-c', names], { env, encoding: 'utf8' });
  assert.equal(file.trim(), join(command.stdout().trim(), 'potassium/__init__.py'));
});
