/** `banana-serve new`: the project it writes, installed from the packed package, tested, started, and built as an image. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test, type TestContext } from 'node:test';
import { ask } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { buildImage, type Image } from '../helpers/dockerfile.js';
import { needs } from '../helpers/needs.js';
import { INSTALL_LIMIT, npmInstall, packInto, run } from '../helpers/packed.js';
import { presentPythons } from '../helpers/pythons.js';
import { ROOT, call, eventually, fixture, runCommand, startServer } from '../helpers/server.js';

const LIMIT = { timeout: 120_000 };
const COMPILED_WORKER = 'node_modules/banana-serve/worker/python/banana_worker/__pycache__';
const FILES = [
  '.dockerignore',
  '.gitignore',
  '.npmrc',
  'Dockerfile',
  'app.test.ts',
  'app.ts',
  'package.json',
  'tsconfig.json',
];

let [folder, project, tarball] = ['', '', ''];
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'banana-new-'));
  project = join(folder, 'my-model');
  tarball = await packInto(folder);
  await npmInstall(folder, tarball);
  const command = runCommand(['new', 'my-model'], { cwd: folder, command: installed(folder) });
  assert.equal((await command.ended).code, 0, command.stderr());
  assert.match(command.stdout(), /Next:\n {2}cd my-model\n {2}npm install\n {2}npm test\n {2}npm run dev\n$/);
  assert.deepEqual((await readdir(project)).sort(), FILES);
  await npmInstall(project, tarball);
}, INSTALL_LIMIT);
after(() => rm(folder, { recursive: true, force: true }));

function installed(where: string): string {
  return join(where, 'node_modules/.bin/banana-serve');
}

test('npm test of a new project passes, types included', LIMIT, async () => {
  // The variable of this test run would make the inner one report to it.
  const { stdout } = await run('npm', ['test'], {
    cwd: project,
    env: { ...process.env, NODE_TEST_CONTEXT: undefined },
  });
  assert.match(stdout, /the model answers in capitals/);
});

test(
  "a new project answers the README's call as the README says",
  { ...LIMIT, skip: needs('curl') },
  async (t) => {
    const server = await startServer('./app.ts', { t, cwd: project, command: installed(project) });
    await assertAnswersAsInReadme(server.url);
    assert.equal((await server.stop()).code, 0);
  },
);

async function assertAnswersAsInReadme(url: string): Promise<void> {
  const page = readFileSync(`${ROOT}README.md`, 'utf8');
  const [, sent, got] = /\$ curl -d '(.*)' localhost:8000\n(\{.*)\n/.exec(page) ?? [];
  const { stdout } = await run('curl', ['-sS', '-d', sent as string, url]);
  assert.equal(stdout, got);
}

describe('a new project in Python', { skip: needs('python3') }, () => {
  const FILES_IN_PYTHON = [
    '.dockerignore',
    '.gitignore',
    'Dockerfile',
    'app.py',
    'package.json',
    'requirements.txt',
    'test_app.py',
  ];
  let inPython = '';
  before(async () => {
    inPython = join(folder, 'my-python-model');
    const command = runCommand(['new', '--python', 'my-python-model'], {
      cwd: folder,
      command: installed(folder),
    });
    assert.equal((await command.ended).code, 0, command.stderr());
    assert.match(
      command.stdout(),
      /Next:\n {2}cd my-python-model\n {2}npm install\n {2}npm test\n {2}npm run dev\n$/,
    );
    assert.deepEqual((await readdir(inPython)).sort(), FILES_IN_PYTHON);
    await npmInstall(inPython, tarball);
  }, INSTALL_LIMIT);

  test('passes its test, with a server that it ends', LIMIT, async () => {
    const { stderr } = await run('npm', ['test'], { cwd: inPython });
    assert.match(stderr, /stopped[^]*Ran 1 test in [^\n]*\n\nOK/);
    assert.doesNotMatch(stderr, /Warning/);
  });

  test("answers the README's call as the README says", { ...LIMIT, skip: needs('curl') }, async (t) => {
    const server = await startServer('./app.py', { t, cwd: inPython, command: installed(inPython) });
    await assertAnswersAsInReadme(server.url);
    assert.equal((await server.stop()).code, 0);
  });

  test('says why its test cannot start the server', LIMIT, async () => {
    const broken = join(folder, 'broken-python-model');
    await cp(inPython, broken, { recursive: true, verbatimSymlinks: true });
    await writeFile(join(broken, 'app.py'), 'import nothing_of_that_name\n');
    await assert.rejects(run('npm', ['test'], { cwd: broken }), ({ stderr }: { stderr: string }) => {
      assert.match(stderr, /nothing_of_that_name/);
      return true;
    });
  });

  test(
    'is built by its Dockerfile in two stages, and answers and drains as process 1',
    { ...LIMIT, skip: needs('unshare') },
    async (t) => {
      const image = join(folder, 'image-python');
      const bin = await baseImages();
      const { env, cmd, stopSignal } = await buildImage(inPython, image, bin);
      assert.equal(
        await readFile(join(bin, 'ran'), 'utf8'),
        'useradd --create-home app\npip install --no-cache-dir -r requirements.txt\n',
      );
      const files = [...FILES_IN_PYTHON, 'node_modules', 'package-lock.json'].filter(
        (name) => !/^\.docker|^Dockerfile/.test(name),
      );
      assert.deepEqual((await readdir(image)).sort(), files.sort());
      const compiled = await readdir(join(image, COMPILED_WORKER));
      assert.ok(
        compiled.some((name) => name.endsWith('.pyc')),
        'no start has to compile the worker',
      );
      const { url, pid, ended } = await startImage(t, { env, cmd, stopSignal }, image, {});
      assert.deepEqual((await call(url, '{"prompt":"hello"}')).json(), { answer: 'HELLO' });
      process.kill(pid, stopSignal);
      assert.equal(await ended, 0);
    },
  );
});

/** The programs of the base images: Node and Python are those of this machine, the others note that they ran, and where. */
async function baseImages(): Promise<string> {
  const bin = join(folder, 'bin-python');
  await mkdir(bin);
  await symlink(process.execPath, join(bin, 'node'));
  await symlink(presentPythons()[0]?.path ?? '', join(bin, 'python3'));
  for (const [name, check] of [
    ['useradd', 'true'],
    ['pip', 'test -f requirements.txt'],
  ] as const)
    await writeFile(join(bin, name), `#!/bin/sh\n${check} && echo "${name} $*" >> '${bin}/ran'\n`, {
      mode: 0o755,
    });
  return bin;
}

test('the package of a new project has the name of its folder, and asks for this version', async () => {
  const fresh = join(folder, 'Ünsere KI 2');
  assert.equal((await runCommand(['new', fresh]).ended).code, 0);
  const { name, type, dependencies } = JSON.parse(await readFile(join(fresh, 'package.json'), 'utf8')) as {
    name: string;
    type: string;
    dependencies: Record<string, string>;
  };
  const { version } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as { version: string };
  assert.deepEqual([name, type, dependencies], ['nsere-ki-2', 'module', { 'banana-serve': `^${version}` }]);
});

describe('new names the file or folder in its way, and writes nothing', () => {
  test('a file of the project', async () => {
    const taken = join(folder, 'taken');
    await mkdir(taken);
    await writeFile(join(taken, 'app.ts'), 'mine');
    const command = runCommand(['new', 'taken'], { cwd: folder });
    assert.equal((await command.ended).code, 2);
    assert.equal(
      command.stderr(),
      'banana-serve: taken: app.ts is there already. Choose another folder; nothing was written.\n',
    );
    assert.deepEqual(await readdir(taken), ['app.ts']);
  });

  test('a file where the folder should be', async () => {
    await writeFile(join(folder, 'file'), '');
    const command = runCommand(['new', 'file'], { cwd: folder });
    assert.equal((await command.ended).code, 2);
    assert.equal(command.stderr(), 'banana-serve: file is a file. Choose another folder.\n');
  });
});

test('no folder given, and an app of that name, are told apart', async (t) => {
  const without = runCommand(['new']);
  assert.equal((await without.ended).code, 2);
  assert.equal(without.stderr(), "banana-serve: missing required argument 'folder'\n");
  const apps = join(folder, 'apps');
  await mkdir(join(apps, 'new'), { recursive: true });
  await writeFile(join(apps, 'new/app.mjs'), 'export const inference = () => "an app called new";');
  const server = await startServer('./new', { t, cwd: apps });
  assert.equal((await call(server.url, '{}')).text, '"an app called new"');
  assert.equal((await server.stop()).code, 0);
});

test('docs/deploy.md shows the very Dockerfile', async () => {
  const page = await readFile(`${ROOT}docs/deploy.md`, 'utf8');
  const [, shown] = /```dockerfile\n([\s\S]*?)```/.exec(page) ?? [];
  assert.equal(shown, await readFile(join(project, 'Dockerfile'), 'utf8'));
});

describe('as process 1 of its own PID namespace', { skip: needs('unshare') }, () => {
  let [folderOfImage, image]: [string, Image | null] = ['', null];
  before(async () => {
    folderOfImage = join(folder, 'image');
    await mkdir(folderOfImage);
    await writeFile(join(project, 'app.ts'), `export * from ${JSON.stringify(fixture('works.mjs'))};\n`);
    image = await buildImage(project, folderOfImage);
  }, INSTALL_LIMIT);

  test('the Dockerfile drains: what runs is answered, and it ends with 0', LIMIT, async (t) => {
    const cues = makeCues(t);
    const { url, pid, ended } = await startImage(t, image as Image, folderOfImage, cues.env);
    const running = ask({ url }, { until: 'go on' }, { id: 'running' });
    await cues.untilNoted('begun running');
    process.kill(pid, (image as Image).stopSignal);
    await eventually(
      async () => (await fetch(`${url}/readyz`)).status === 503,
      10_000,
      () => 'it still says that it is ready',
    );
    cues.give('go on');
    assert.equal((await running).status, 200);
    assert.equal(await ended, 0);
  });

  test('workers that are killed leave no zombies', LIMIT, async (t) => {
    const cues = makeCues(t);
    const { url, pid, ended } = await startImage(t, image as Image, folderOfImage, cues.env);
    for (let restarts = 1; restarts <= 3; restarts += 1) {
      const id = `before death ${restarts}`;
      assert.equal((await ask({ url }, {}, { id })).status, 200);
      const [worker] = childrenOf(pid).filter((child) => titleOf(child).startsWith('banana-serve worker'));
      process.kill(worker as number, 'SIGKILL');
      await eventually(
        async () => {
          const { model } = (await (await fetch(`${url}/status`)).json()) as {
            model: { workers: { restarts: number; state: string }[] };
          };
          return model.workers[0]?.restarts === restarts && model.workers[0].state === 'idle';
        },
        20_000,
        () => `worker ${worker} was not replaced`,
      );
    }
    assert.deepEqual(childrenOf(pid).filter(isZombie), []);
    process.kill(pid, 'SIGTERM');
    assert.equal(await ended, 0);
  });
});

interface Started {
  readonly url: string;
  /** As this namespace counts. */
  readonly pid: number;
  readonly ended: Promise<number | null>;
}

async function startImage(
  t: TestContext,
  { cmd, env }: Image,
  cwd: string,
  more: Readonly<Record<string, string | undefined>>,
): Promise<Started> {
  const namespace = ['--map-root-user', '--mount', '--pid', '--fork', '--mount-proc', '--kill-child'];
  const child = spawn('unshare', [...namespace, ...cmd], {
    cwd,
    env: { ...process.env, ...env, ...more, PORT: '0', BANANA_HOST: '127.0.0.1' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const url = await urlSaid(child);
  const [pid] = childrenOf(child.pid as number);
  return { url, pid: pid as number, ended };
}

async function urlSaid(child: ChildProcess): Promise<string> {
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const urlOf = (): string | undefined => / on (http:\/\/\S+)\n/.exec(said)?.[1];
  await eventually(
    () => urlOf() !== undefined,
    20_000,
    () => `it does not listen: ${said}`,
  );
  return urlOf() as string;
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
}

function titleOf(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
}

function isZombie(pid: number): boolean {
  return / Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\)/, ''));
}
