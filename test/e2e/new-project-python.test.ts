/** `banana-serve new --python`: the project it writes, installed from the packed package, tested, started, and built as an image. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { buildImage } from '../helpers/dockerfile.js';
import { needs } from '../helpers/needs.js';
import { assertAnswersAsInReadme, followSteps, startImage } from '../helpers/new-project.js';
import { INSTALL_LIMIT, packInto, placePacked, run } from '../helpers/packed.js';
import { presentPythons } from '../helpers/pythons.js';
import { ROOT, call, runCommand, startServer } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };
const COMPILED_WORKER = 'node_modules/banana-serve/worker/python/banana_worker/__pycache__';

describe('a new project in Python', { skip: needs('python3') }, () => {
  const FILES_IN_PYTHON = [
    '.dockerignore',
    '.gitignore',
    'Dockerfile',
    'app.py',
    'package.json',
    'pyrightconfig.json',
    'requirements.txt',
    'test_app.py',
  ];
  let [folder, inPython, installed, tarball] = ['', '', '', ''];
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'banana-new-python-'));
    const packed = await packInto(folder);
    inPython = join(folder, 'my-python-model');
    const command = runCommand(['new', '--python', 'my-python-model'], {
      cwd: folder,
      command: await placePacked(packed, folder),
    });
    assert.equal((await command.ended).code, 0, command.stderr());
    assert.deepEqual((await readdir(inPython)).sort(), FILES_IN_PYTHON);
    tarball = basename(packed.tarball);
    await followSteps(command.stdout(), folder);
    installed = join(inPython, 'node_modules/.bin/banana-serve');
  }, INSTALL_LIMIT);
  after(() => rm(folder, { recursive: true, force: true }));

  const tested = async (file: string, args: readonly string[]): Promise<string> => {
    const { stderr } = await run(file, args, { cwd: inPython });
    assert.doesNotMatch(stderr, /Warning/);
    const [, summary = stderr] = /stopped[^]*Ran 2 tests in [^\n]*\n\n(OK.*)/.exec(stderr) ?? [];
    return `${summary}${/not checked by their types: [^.]*/.exec(stderr)?.[0] ?? ''}`;
  };

  test('passes its tests, with servers that it ends', { ...LIMIT, skip: needs('pydantic') }, async () => {
    assert.equal(await tested('npm', ['test']), 'OK');
  });

  const [without] = presentPythons().filter(({ path }) => !hasPydantic(path));
  test(
    'works without pydantic, which its log says: the test of its types is skipped',
    { ...LIMIT, skip: without === undefined && 'each Python here has pydantic' },
    async () => {
      const found = await tested(without?.path ?? '', ['-m', 'unittest']);
      assert.match(found, /^OK \(skipped=1\)not checked by their types: pydantic/);
    },
  );

  test('an editor knows the types of ctx, by the project alone', LIMIT, async () => {
    const wrong = join(inPython, 'wrong.py');
    await writeFile(
      wrong,
      'from banana_serve import Context\n\n\ndef late(ctx: Context):\n    return ctx.deadlin\n',
    );
    const args = [`${ROOT}node_modules/pyright/index.js`, '--pythonpath', '/bin/false', '--outputjson'];
    await assert.rejects(run(process.execPath, args, { cwd: inPython }), ({ stdout }: { stdout: string }) => {
      const { generalDiagnostics } = JSON.parse(stdout) as Pyright;
      const errors = generalDiagnostics.filter(({ severity }) => severity === 'error'); // a package to install is a warning
      const found = errors.map(({ file, message }) => `${basename(file)}: ${message}`);
      assert.equal(found.length, 1, found.join('\n'));
      assert.match(found[0] ?? '', /^wrong\.py: Cannot access attribute "deadlin" for class "CallContext"/);
      return true;
    });
    await rm(wrong);
  });

  test('python3 app.py finds banana_serve by the line of docs/python.md', LIMIT, async () => {
    const page = await readFile(`${ROOT}docs/python.md`, 'utf8');
    const [, line = ''] = /^(export PYTHONPATH=.*)$/m.exec(page) ?? [];
    await run('sh', ['-ec', `${line}\npython3 -W error app.py`], { cwd: inPython });
  });

  test("gives the README's call the answer in the README", { ...LIMIT, skip: needs('curl') }, async (t) => {
    const server = await startServer('./app.py', { t, cwd: inPython, command: installed });
    await assertAnswersAsInReadme(server.url);
    assert.equal((await server.stop()).code, 0);
  });

  test('prints why its test cannot start the server', LIMIT, async () => {
    const broken = join(folder, 'broken-python-model');
    await mkdir(broken);
    for (const name of ['package.json', 'test_app.py']) await cp(join(inPython, name), join(broken, name));
    await symlink(join(inPython, 'node_modules'), join(broken, 'node_modules'));
    await writeFile(join(broken, 'app.py'), 'import nothing_of_that_name\n');
    await assert.rejects(run('npm', ['test'], { cwd: broken }), ({ stderr }: { stderr: string }) => {
      assert.match(stderr, /nothing_of_that_name/);
      return true;
    });
  });

  test(
    'is built by its Dockerfile in two stages, and answers and drains as process 1',
    { ...INSTALL_LIMIT, skip: needs('unshare') },
    async (t) => {
      const image = join(folder, 'image-python');
      const bin = await baseImages(folder, inPython);
      await mkdir(join(inPython, 'lib/__pycache__'), { recursive: true });
      await mkdir(join(inPython, 'lib/.venv/bin'), { recursive: true });
      const { env, cmd, stopSignal, user, healthcheck } = await buildImage(inPython, image, bin);
      assert.match(user, /^[1-9]\d*$/);
      assert.match(healthcheck.join(' '), /\/readyz/);
      assert.deepEqual(await readdir(join(image, 'lib')), []);
      assert.equal(
        await readFile(join(bin, 'ran'), 'utf8'),
        [
          'npm ci --omit=dev --no-audit --no-fund',
          'useradd --create-home --uid 1000 app',
          'pip install --no-cache-dir -r requirements.txt\n',
        ].join('\n'),
      );
      const files = [...FILES_IN_PYTHON, 'node_modules', 'package-lock.json', tarball, 'lib'].filter(
        (name) => !/^\.docker|^Dockerfile/.test(name),
      );
      assert.deepEqual((await readdir(image)).sort(), files.sort());
      const compiled = await readdir(join(image, COMPILED_WORKER));
      assert.ok(
        compiled.some((name) => name.endsWith('.pyc')),
        'no start has to compile the worker',
      );
      const { url, pid, ended } = await startImage(t, { env, cmd }, image, {});
      assert.deepEqual((await call(url, '{"prompt":"hello"}')).json(), { answer: 'HELLO' });
      process.kill(pid, stopSignal);
      assert.equal(await ended, 0);
    },
  );
});

function hasPydantic(python: string): boolean {
  return spawnSync(python, ['-c', 'import pydantic_core']).status === 0;
}

interface Pyright {
  readonly generalDiagnostics: readonly Readonly<Record<'file' | 'message' | 'severity', string>>[];
}

/**
 * The programs of the base images: Node and Python are those of this machine, the others note that they ran, and where. npm
 * takes what is installed in the project: the same command installs in new-project.test.ts.
 */
async function baseImages(folder: string, project: string): Promise<string> {
  const bin = join(folder, 'bin-python');
  await mkdir(bin);
  await symlink(process.execPath, join(bin, 'node'));
  await symlink(presentPythons()[0]?.path ?? '', join(bin, 'python3'));
  for (const [name, check] of [
    ['npm', `test -f package-lock.json && cp -r '${project}/node_modules' .`],
    ['useradd', 'true'],
    ['pip', 'test -f requirements.txt'],
  ] as const)
    await writeFile(join(bin, name), `#!/bin/sh\n${check} && echo "${name} $*" >> '${bin}/ran'\n`, {
      mode: 0o755,
    });
  return bin;
}
