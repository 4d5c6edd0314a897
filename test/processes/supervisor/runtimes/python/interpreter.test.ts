/** The choice of the interpreter of an app in Python, with scripts that act as interpreters. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, relative } from 'node:path';
import { test, type TestContext } from 'node:test';
import { resolveOptions } from '../../../../../supervisor/options/resolve.js';
import { prepareProgram } from '../../../../../supervisor/runtimes/index.js';
import { askInterpreter } from '../../../../../supervisor/runtimes/python/find-interpreter.js';
import { foldersUpwards, isOwn } from '../../../../../supervisor/runtimes/python/places.js';
import type { AppSetting } from '../../../../../supervisor/runtimes/runtime.js';
import { eventually, isAlive, ROOT } from '../../../../helpers/server.js';

/** A folder that stands for a machine: `repo/start/app/app.py`, started in `repo/start`. */
class Machine {
  readonly root: string;
  readonly env: Record<string, string>;
  #writes = 0;

  constructor(t: TestContext) {
    this.root = realpathSync(mkdtempSync(join(tmpdir(), 'banana-python-')));
    t.after(() => rmSync(this.root, { recursive: true }));
    this.env = { PATH: this.at('bin') };
    this.folder('bin');
    this.folder('repo/.git');
    this.write('repo/start/app/app.py', '');
  }

  at(path: string): string {
    return join(this.root, path);
  }

  folder(path: string): void {
    mkdirSync(this.at(path), { recursive: true });
  }

  write(path: string, text: string): void {
    this.folder(dirname(path));
    writeFileSync(this.at(path), text, { mode: 0o755 });
    utimesSync(this.at(path), 0, (this.#writes += 1)); // the clock of a file system may tick every 10 ms only
  }

  /** `says`: the path that it reports as its own; '' if it reports none. */
  interpreter(path: string, version: string, says = this.at(path)): void {
    this.write(path, `#!/bin/sh\necho >> ${this.at(path)}.asked\nprintf '%s\\n%s' '${version}' '${says}'\n`);
  }

  timesAsked(path: string): number {
    return readFileSync(this.at(`${path}.asked`), 'utf8').length;
  }

  async choose(setting: Partial<AppSetting> = {}, python?: string) {
    const where = (): string => 'BANANA_PYTHON';
    const program = await prepareProgram(
      {
        name: 'app',
        version: '1',
        app: this.at('repo/start/app/app.py'),
        appPlace: '',
        service: null,
        workerCommand: null,
      },
      {
        resolved: resolveOptions(python === undefined ? [] : [{ values: { python }, where }]),
        startFolder: this.at('repo/start'),
        isUnpacked: false,
        env: this.env,
        ...setting,
      },
    );
    assert.equal(program.command[0], program.interpreter?.path);
    return program;
  }

  async chosen(setting: Partial<AppSetting> = {}, python?: string): Promise<string> {
    return ((await this.choose(setting, python)).command[0] as string).slice(this.root.length + 1);
  }

  async refusal(setting: Partial<AppSetting> = {}, python?: string): Promise<string> {
    const thrown: unknown = await this.choose(setting, python).catch((error: unknown) => error);
    const { code, message } = thrown as Error & { code: string };
    assert.equal(code, 'SERVE_CONFIG');
    assert.ok(!message.includes('\n'), 'one line');
    return message.replaceAll(`${this.root}/`, '');
  }
}

test('the first place with an interpreter is used, in the documented order', async (t) => {
  const machine = new Machine(t);
  const { env, at } = { env: machine.env, at: (path: string) => machine.at(path) };
  const places = [
    'bin/python',
    'bin/python3',
    'repo/venv/bin/python',
    'repo/.venv/bin/python',
    'repo/start/venv/bin/python',
    'repo/start/app/venv/bin/python',
    'repo/start/app/.venv/bin/python',
    'conda/bin/python',
    'env/bin/python',
  ];
  for (const place of places) {
    machine.interpreter(place, '3.12.1');
    if (place.startsWith('conda')) env['CONDA_PREFIX'] = at('conda');
    if (place.startsWith('env')) env['VIRTUAL_ENV'] = at('env');
    assert.equal(await machine.chosen(), place);
  }
  machine.interpreter('given/python', '3.8.0');
  assert.equal(await machine.chosen({}, '../../given/python'), 'given/python');
  assert.equal(await machine.chosen({}, at('given/python')), 'given/python');
  assert.equal(await machine.chosen({}, 'python'), 'bin/python', 'a name is searched in PATH');
});

test('relative folders of PATH are ignored, because other users may own the start folder', async (t) => {
  const machine = new Machine(t);
  machine.interpreter('start/python3', '3.12.1');
  machine.interpreter('bin/python3', '3.11.7');
  const here = relative(process.cwd(), machine.at('start'));
  machine.env['PATH'] = [here, '', machine.at('bin')].join(delimiter);
  assert.equal(await machine.chosen(), 'bin/python3');
});

test('the program is the shipped worker, with unbuffered output and its share of threads', async (t) => {
  const machine = new Machine(t);
  machine.interpreter('bin/python3', '3.13.0');
  const program = await machine.choose();
  assert.match(String(program.command[1]), /\/worker\/python\/banana_worker\/__main__\.py$/);
  assert.deepEqual(program.env, { PYTHONUNBUFFERED: '1' });
  assert.deepEqual(program.threadVariables, ['OMP_NUM_THREADS', 'MKL_NUM_THREADS', 'OPENBLAS_NUM_THREADS']);
  assert.deepEqual([program.label, program.interpreter?.version], ['python', '3.13.0']);
  assert.deepEqual(program.watches, [machine.at('repo/start/app/app.py')]);
});

test('a shim is run once for the path of its interpreter, which is then used', async (t) => {
  const machine = new Machine(t);
  machine.interpreter('versions/3.11.7/bin/python3', '3.11.7');
  machine.interpreter('bin/python3', '3.11.7', machine.at('versions/3.11.7/bin/python3'));
  const all = await Promise.all([machine.chosen(), machine.chosen()]);
  assert.deepEqual([...all, await machine.chosen()], Array(3).fill('versions/3.11.7/bin/python3'));
  assert.equal(machine.timesAsked('bin/python3'), 1);
});

test('an app of an archive gets no interpreter from the folders beside it', async (t) => {
  const machine = new Machine(t);
  machine.interpreter('repo/start/app/.venv/bin/python', '3.12.1');
  machine.interpreter('bin/python3', '3.11.7');
  assert.equal(await machine.chosen({ isUnpacked: true }), 'bin/python3');
});

test('an environment that other users may write to is not used, with a warning', async (t) => {
  const machine = new Machine(t);
  machine.interpreter('bin/python3', '3.11.7');
  machine.interpreter('repo/start/.venv/bin/python3', '3.12.1');
  symlinkSync('python3', machine.at('repo/start/.venv/bin/python'));
  machine.write('repo/start/.venv/pyvenv.cfg', '');
  machine.folder('repo/start/.venv/lib/python3.12/site-packages');
  machine.folder('repo/start/.venv/lib/pypy3.10/site-packages');
  const parts = ['', '/bin', '/bin/python3', '/pyvenv.cfg', '/lib', '/lib/python3.12'];
  const packages = ['/lib/python3.12/site-packages', '/lib/pypy3.10/site-packages'];
  const within = [...parts, ...packages].map((part) => `repo/start/.venv${part}`);
  for (const open of ['repo/start', ...within]) {
    chmodSync(machine.at(open), 0o757);
    const { command, warnings } = await machine.choose();
    assert.equal(command[0], machine.at('bin/python3'), open);
    assert.deepEqual(
      warnings.map((text) => text.replaceAll(`${machine.root}/`, '')),
      [
        `repo/start/app/app.py: repo/start/.venv is not used, since other users may write to ${open}. Remove their write permission, or name its interpreter with --python`,
      ],
    );
    chmodSync(machine.at(open), 0o755);
  }
  assert.equal(await machine.chosen(), 'repo/start/.venv/bin/python3');
});

test("an interpreter outside this user's environment is trusted, whichever users may write to it", async (t) => {
  const machine = new Machine(t);
  machine.interpreter('tools/python3', '3.12.1');
  chmodSync(machine.at('tools/python3'), 0o775);
  machine.folder('repo/start/.venv/bin');
  symlinkSync(machine.at('tools/python3'), machine.at('repo/start/.venv/bin/python'));
  assert.equal(await machine.chosen(), 'tools/python3');
});

test('a folder is trusted if this user or root owns it and no other user may write to it', (t) => {
  const [uid, gid] = [1000, 1000];
  const user = process as unknown as { getuid: () => number; getgid: () => number };
  t.mock.method(user, 'getuid', () => uid);
  const getgid = t.mock.method(user, 'getgid', () => gid);
  assert.ok(isOwn({ uid, gid, mode: 0o40755 }));
  assert.ok(isOwn({ uid: 0, gid: 0, mode: 0o40755 }));
  assert.ok(isOwn({ uid, gid, mode: 0o40775 }), 'a private group of this user, as on some systems');
  assert.ok(!isOwn({ uid, gid: gid + 1, mode: 0o40775 }));
  assert.ok(!isOwn({ uid: uid + 1, gid, mode: 0o40755 }));
  assert.ok(!isOwn({ uid: 0, gid: 0, mode: 0o41777 }), 'a shared folder for temporary files');
  getgid.mock.mockImplementation(() => 20);
  assert.ok(!isOwn({ uid, gid: 20, mode: 0o40775 }), 'a primary group of all users, as on other systems');
  assert.ok(
    !isOwn({ uid, gid, mode: 0o40775 }),
    'a group that has the number of the user but is not his own',
  );
  assert.ok(isOwn({ uid, gid: 20, mode: 0o40755 }));
});

test('environments are searched up to the start folder or the root of the repository', (t) => {
  const machine = new Machine(t);
  const upwards = (app: string, start: string): string[] =>
    foldersUpwards(machine.at(app), machine.at(start)).map((path) => path.slice(machine.root.length + 1));
  assert.deepEqual(upwards('repo/a/b', 'repo/a'), ['repo/a/b', 'repo/a', 'repo']);
  assert.deepEqual(upwards('repo/a/b', 'elsewhere'), ['repo/a/b', 'repo/a', 'repo']);
  assert.deepEqual(upwards('free/a/b', 'free'), ['free/a/b', 'free/a', 'free']);
  assert.deepEqual(upwards('free/a/b', 'elsewhere'), ['free/a/b']);
  assert.deepEqual(upwards('free', 'free'), ['free']);
});

test('a missing active environment is skipped with a warning', async (t) => {
  const machine = new Machine(t);
  machine.interpreter('bin/python3', '3.11.7');
  machine.env['VIRTUAL_ENV'] = machine.at('gone');
  const { command, warnings } = await machine.choose();
  assert.equal(command[0], machine.at('bin/python3'));
  assert.deepEqual(
    warnings.map((text) => text.replaceAll(`${machine.root}/`, '')),
    ['repo/start/app/app.py: VIRTUAL_ENV names gone, which has no bin/python: another interpreter is used'],
  );
});

test('without any Python, one line lists the searched places', async (t) => {
  const machine = new Machine(t);
  machine.env['VIRTUAL_ENV'] = machine.at('gone');
  assert.equal(
    await machine.refusal(),
    'repo/start/app/app.py: it needs Python 3.8 or newer, and none was found. Tried: gone/bin/python (VIRTUAL_ENV), .venv and venv in repo/start/app and above, python3 in PATH, python in PATH. Install one, or name it: --python /path/to/python3.',
  );
  assert.equal(
    await machine.refusal({}, 'python3.99'),
    'repo/start/app/app.py: it needs Python 3.8 or newer, and there is no python3.99 (BANANA_PYTHON). Name another, such as --python /usr/bin/python3, or leave it out.',
  );
});

test('a Python that is too old is refused with its version and the earlier attempts', async (t) => {
  const machine = new Machine(t);
  machine.interpreter('bin/python', '2.7.18');
  assert.equal(
    await machine.refusal({ isUnpacked: true }),
    'repo/start/app/app.py: it needs Python 3.8 or newer, and bin/python (python in PATH) is Python 2.7.18. Tried: python3 in PATH, bin/python (python in PATH). Install one, or name it: --python /path/to/python3.',
  );
  machine.interpreter('bin/python3', '3.7.16');
  assert.match(await machine.refusal(), /and bin\/python3 \(python3 in PATH\) is Python 3\.7\.16\. Tried: /);
  machine.interpreter('bin/python3', '3.10.0');
  assert.equal(await machine.chosen(), 'bin/python3', 'a replaced program is run again');
  machine.interpreter('bin/python3', '4.0.0');
  assert.equal((await machine.choose()).interpreter?.version, '4.0.0', 'a newer major version counts');
});

test('a program that does not run is refused with its output, and no other is used instead', async (t) => {
  const machine = new Machine(t);
  machine.interpreter('bin/python3', '3.11.7');
  machine.write('bin/odd', '#!/bin/sh\necho first >&2; echo "odd: no version is set" >&2; exit 127\n');
  machine.write('bin/cat', '#!/bin/sh\necho hello\n');
  const lost = `echo "ModuleNotFoundError: No module named 'encodings'" >&2; echo '  <no Python frame>' >&2`;
  machine.write('bin/lost', `#!/bin/sh\n${lost}; exit 1\n`);
  machine.write('bin/silent', '#!/bin/sh\nexit 3\n');
  machine.write('bin/crashes', '#!/bin/sh\nkill -SEGV $$\n');
  chmodSync(machine.at('bin/odd'), 0o755);
  assert.match(
    await machine.refusal({}, 'odd'),
    /and bin\/odd \(odd \(BANANA_PYTHON\)\) does not run: odd: no version is set\./,
  );
  assert.match(await machine.refusal({}, 'cat'), /is not Python\./);
  assert.match(await machine.refusal({}, 'lost'), /does not run: ModuleNotFoundError: .* 'encodings'\. Name/);
  assert.match(await machine.refusal({}, 'silent'), /does not run: it ended with exit code 3\. Name another/);
  assert.match(await machine.refusal({}, 'crashes'), /does not run: it was ended by SIGSEGV\. Name another/);
  machine.folder('repo/start/app/.venv/bin');
  symlinkSync(machine.at('gone'), machine.at('repo/start/app/.venv/bin/python'));
  assert.match(
    await machine.refusal(),
    /app\/\.venv\/bin\/python cannot be run: it, or the target of its link, does not exist\. Tried: /,
  );
  rmSync(machine.at('repo/start/app/.venv/bin/python'));
  symlinkSync('python', machine.at('repo/start/app/.venv/bin/python'));
  assert.match(
    await machine.refusal(),
    /app\/\.venv\/bin\/python cannot be run: its symbolic links form a loop\. Tried: /,
  );
});

test('a program that failed is run again, because its configuration may have been mended', async (t) => {
  const machine = new Machine(t);
  const version = machine.at('version');
  machine.write(
    'bin/python3',
    `#!/bin/sh\n[ -f ${version} ] && printf '3.12.1\\n%s' ${machine.at('real')}\n`,
  );
  assert.match(await machine.refusal(), /bin\/python3 \(python3 in PATH\) does not run: /);
  machine.write('version', '3.12.1');
  assert.equal(await machine.chosen(), 'real');
});

test('a program that does not answer is ended with its child processes', { timeout: 240_000 }, async (t) => {
  const machine = new Machine(t);
  const heir = `while [ -d ${machine.root} ]; do sleep 0.1; done`; // until the end of this test
  const tell = `echo $! > ${machine.at('pid.new')}; mv ${machine.at('pid.new')} ${machine.at('pid')}`;
  machine.write('bin/hangs', `#!/bin/sh\n(${heir}) &\n${tell}\nwait\n`);
  const stop = new AbortController();
  const answer = askInterpreter(machine.at('bin/hangs'), process.env, stop.signal);
  const refused = assert.rejects(answer, { name: 'AbortError' });
  await eventually(
    () => existsSync(machine.at('pid')),
    60_000,
    () => 'it has not begun',
  );
  stop.abort();
  await refused;
  const pid = Number(readFileSync(machine.at('pid'), 'utf8'));
  await eventually(
    () => !isAlive(pid),
    60_000,
    () => 'a child process is left',
  );
});

test('a program that does not answer in time is refused with the limit', { timeout: 240_000 }, async (t) => {
  const machine = new Machine(t);
  machine.write('bin/hangs', '#!/bin/sh\nexec sleep 1000\n');
  await assert.rejects(askInterpreter(machine.at('bin/hangs'), process.env, undefined, 200), {
    message: 'did not report its version in 200 ms',
  });
});

test('a program that prints without end is ended', { timeout: 240_000 }, async (t) => {
  const machine = new Machine(t);
  machine.write('bin/prints', '#!/bin/sh\nexec yes\n');
  await assert.rejects(askInterpreter(machine.at('bin/prints'), process.env), {
    message: /^does not run: /, // `yes` may name its own error, or the signal that ended it
  });
});

test('a program that cannot be started without free descriptors is refused, and the server goes on', (t) => {
  const machine = new Machine(t);
  machine.write(
    'asks.mjs',
    `import { openSync } from 'node:fs';
import { askInterpreter } from ${JSON.stringify(`${ROOT}dist/supervisor/runtimes/python/find-interpreter.js`)};
try {
  for (;;) openSync('/dev/null');
} catch {
  askInterpreter('/bin/sh', process.env).catch(({ message }) => console.log(message));
}
`,
  );
  const script = 'ulimit -n 64 && exec "$0" "$1"';
  const asked = spawnSync('sh', ['-c', script, process.execPath, machine.at('asks.mjs')], {
    encoding: 'utf8',
  });
  assert.equal(asked.status, 0, asked.stderr);
  assert.match(asked.stdout, /^does not run: spawn \/bin\/sh EMFILE$/m);
});
