/** `banana-serve new`: the project it writes, installed from the packed package, tested, started, and built as an image. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { ask } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { buildImage, type Image } from '../helpers/dockerfile.js';
import { needs } from '../helpers/needs.js';
import { INSTALL_LIMIT, completeLock, packInto, placePacked, run } from '../helpers/packed.js';
import { assertAnswersAsInReadme, childrenOf, followSteps, startImage } from '../helpers/new-project.js';
import { eventually, fixture, runCommand, startServer } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };
const FILES = [
  '.dockerignore',
  '.gitignore',
  'Dockerfile',
  'app.test.ts',
  'app.ts',
  'package.json',
  'tsconfig.json',
];

let [folder, project] = ['', ''];
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'banana-new-'));
  project = join(folder, 'my-model');
  const packed = await packInto(folder);
  const newCommand = await placePacked(packed, folder);
  const command = runCommand(['new', 'my-model'], { cwd: folder, command: newCommand });
  assert.equal((await command.ended).code, 0, command.stderr());
  assert.deepEqual((await readdir(project)).sort(), FILES);
  await followSteps(command.stdout(), folder);
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
  assert.match(stdout, /a wrong input is 422/);
});

test(
  "a new project gives the README's call the answer in the README",
  { ...LIMIT, skip: needs('curl') },
  async (t) => {
    const server = await startServer('./app.ts', { t, cwd: project, command: installed(project) });
    await assertAnswersAsInReadme(server.url);
    assert.equal((await server.stop()).code, 0);
  },
);

test('new ends with 2 and a sentence if a file is in its way', async () => {
  const taken = join(folder, 'taken');
  await mkdir(taken);
  await writeFile(join(taken, 'app.ts'), 'mine');
  const command = runCommand(['new', 'taken'], { cwd: folder });
  assert.equal((await command.ended).code, 2);
  assert.equal(
    command.stderr(),
    'banana-serve: taken: app.ts exists already. Choose another folder; nothing was written.\n',
  );
});

test('no folder given, and an app of that name, are different errors', async () => {
  const without = runCommand(['new']);
  assert.equal((await without.ended).code, 2);
  assert.equal(without.stderr(), "banana-serve: missing required argument 'folder'\n");
  await mkdir(join(folder, 'apps/new'), { recursive: true });
  const app = runCommand(['./new', '--port', '0'], { cwd: join(folder, 'apps') });
  assert.equal((await app.ended).code, 2);
  assert.match(app.stderr(), /^banana-serve: \.\/new is a folder without app\.ts, /);
});

describe('as process 1 of its own PID namespace', { skip: needs('unshare') }, () => {
  let [folderOfImage, image]: [string, Image | null] = ['', null];
  before(async () => {
    folderOfImage = join(folder, 'image');
    await mkdir(folderOfImage);
    await writeFile(join(project, 'app.ts'), `export * from ${JSON.stringify(fixture('works.mjs'))};\n`);
    await mkdir(join(project, 'deep/__pycache__'), { recursive: true });
    await mkdir(join(project, 'deep/.venv/bin'), { recursive: true });
    await completeLock(project);
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
      60_000,
      () => 'it still says that it is ready',
    );
    cues.give('go on');
    assert.equal((await running).status, 200);
    assert.equal(await ended, 0);
  });

  test('its user is a number, and what an app built beside itself stays out', async () => {
    assert.match((image as Image).user, /^[1-9]\d*$/);
    assert.deepEqual(await readdir(join(folderOfImage, 'deep')), []);
  });

  test(
    'its HEALTHCHECK passes while the server is ready, and fails without one; killed workers leave no zombies',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const { url, pid, ended } = await startImage(t, image as Image, folderOfImage, cues.env);
      const [file = '', ...args] = (image as Image).healthcheck;
      const env = { ...process.env, PORT: new URL(url).port };
      await eventually(
        async () => (await fetch(`${url}/readyz`)).status === 200,
        60_000,
        () => 'it is not ready',
      );
      await run(file, args, { env });
      for (let restarts = 1; restarts <= 2; restarts += 1) {
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
          60_000,
          () => `worker ${worker} was not replaced`,
        );
      }
      assert.deepEqual(childrenOf(pid).filter(isZombie), []);
      process.kill(pid, 'SIGTERM');
      assert.equal(await ended, 0);
      await assert.rejects(run(file, args, { env }), { code: 1 });
    },
  );
});

function titleOf(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
}

function isZombie(pid: number): boolean {
  return / Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\)/, ''));
}
