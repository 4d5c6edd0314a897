/** `banana-serve new --onnx`: the project it writes, with the packed package beside this checkout's dependencies. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { INSTALL_LIMIT, packInto, placePacked, run } from '../helpers/packed.js';
import { call, runCommand, startServer } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

const FILES = [
  '.dockerignore',
  '.gitignore',
  'Dockerfile',
  'model.example.json',
  'model.onnx',
  'model.test.js',
  'package.json',
];

describe('a new project of a model without code', () => {
  let [folder, project, installed] = ['', '', ''];
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'banana-new-onnx-'));
    project = join(folder, 'my-model');
    installed = await placePacked(await packInto(folder), folder);
    const command = runCommand(['new', 'my-model', '--onnx'], { cwd: folder, command: installed });
    assert.equal((await command.ended).code, 0, command.stderr());
    assert.deepEqual((await readdir(project)).sort(), FILES);
    assert.match(command.stdout(), /\n {2}npm pack .*\n {2}ONNXRUNTIME_NODE_INSTALL=skip npm install\n/);
  }, INSTALL_LIMIT);
  after(() => rm(folder, { recursive: true, force: true }));

  test('depends on onnxruntime-node, and its image serves the model', async () => {
    const { dependencies } = JSON.parse(await readFile(join(project, 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>;
    };
    assert.match(dependencies['onnxruntime-node'] ?? '', /^\^1\.\d+\.\d+$/);
    assert.match(await readFile(join(project, 'Dockerfile'), 'utf8'), /cli\.js", "\.\/model\.onnx"\]/);
  });

  test('passes its test', LIMIT, async () => {
    const { stdout } = await run('npm', ['test'], {
      cwd: project,
      env: { ...process.env, NODE_TEST_CONTEXT: undefined },
    });
    assert.match(stdout, /the model sees a seven in the example/);
  });

  test('answers its example, which also warms it up', LIMIT, async (t) => {
    const server = await startServer('./model.onnx', { t, cwd: project, command: installed });
    const answer = await call(server.url, await readFile(join(project, 'model.example.json')));
    assert.equal(answer.json<{ probabilities: number[] }>().probabilities.length, 10);
    assert.doesNotMatch(server.stderr(), /WARN/);
    assert.equal((await server.stop()).code, 0);
  });

  test('asks for the version once npm has installed the package by its name', async () => {
    const lock = join(folder, 'node_modules/.package-lock.json');
    await writeFile(lock, '{"packages":{"node_modules/banana-serve":{"version":"0.1.0"}}}');
    const command = runCommand(['new', 'later', '--onnx'], { cwd: folder, command: installed });
    assert.equal((await command.ended).code, 0);
    assert.match(command.stdout(), /Next:\n {2}cd later\n {2}ONNXRUNTIME_NODE_INSTALL=skip npm install\n/);
    assert.match(await readFile(join(folder, 'later/package.json'), 'utf8'), /"banana-serve": "\^\d/);
    await rm(lock);
  });

  test('is written in Python or without code, not both', async () => {
    const command = runCommand(['new', 'other', '--onnx', '--python'], { cwd: folder, command: installed });
    assert.equal((await command.ended).code, 2);
    assert.match(command.stderr(), /'--onnx' cannot be used with option '--python'/);
  });
});
