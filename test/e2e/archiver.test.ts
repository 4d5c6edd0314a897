/** `banana-serve archive` and `model-archiver`: what they write, what other tools make of it, and the way back to a server. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { runArchiver } from '../../supervisor/archive/archiver.js';
import { startManagedHere } from '../helpers/managed-command.js';
import { needs } from '../helpers/needs.js';
import { CLI, ROOT } from '../helpers/server.js';
import { appFolder } from '../worker/app-folder.js';

const LIMIT = { timeout: 240_000 };

const HANDLER = `
  import { readFileSync } from 'node:fs';
  import type { Item } from 'banana-serve/mms';
  enum Kind { Cat = 'cat' }
  export const handle = (data: Item[] | null) =>
    data?.map(() => ({ kind: Kind.Cat, labels: readFileSync('data/labels.txt', 'utf8') })) ?? null;`;

/** A model's folder: files that are packed, and files that are left out. */
const MODEL = {
  'model/cats.ts': HANDLER,
  'model/data/labels.txt': 'felis',
  'model/run.sh': '#!/bin/sh',
  'model/.hidden-file': 'packed',
  [`model/${'deep/'.repeat(30)}weights`]: 'in a path of more than a hundred characters',
  'model/.git/config': '',
  'model/__pycache__/cats.score-7.py311.nbi': '', // as numba keeps what it has compiled
  'model/__MACOSX/x': '',
  'model/old.pyc': '',
  'model/.DS_Store': '',
  'model/other.mar': '',
  'model/MAR-INF/MANIFEST.json': '{"model":{"modelName":"old","handler":"old"}}',
  'model/data/MANIFEST.json': '{}',
};

const PACKED = [
  '.hidden-file',
  'MAR-INF/MANIFEST.json',
  'cats.ts',
  'data/labels.txt',
  `${'deep/'.repeat(30)}weights`,
  'linked.txt',
  'run.sh',
  'twin.sh',
].sort();

/** Files as torch-model-archiver takes them: each by a flag. */
const TORCH = {
  'src/torch_handler.py': `
class Handler:
    def initialize(self, context):
        model = context.manifest['model']
        names = [model['serializedFile'], 'labels.txt', 'inner/deep.txt']
        self.answer = {'files': [open(name).read() for name in names], 'model': model}

    def handle(self, data, context):
        return [self.answer for _ in data]
`,
  'src/net.py': '',
  'net.pt': 'weights',
  'labels.txt': 'felis',
  'extra/inner/deep.txt': 'deep',
  'requirements.txt': '',
  'net.yaml': 'a: 1',
};

const TORCH_ARGS = [
  '--model-name net --version 2.0 --handler src/torch_handler.py:Handler --model-file src/net.py',
  '--serialized-file net.pt --extra-files labels.txt,extra -r requirements.txt -c net.yaml --export-path store',
].join(' ');

const COMMANDS = {
  'banana-serve archive': [CLI, 'archive'],
  'model-archiver': [`${ROOT}dist/front/model-archiver.js`],
};

interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function run(cwd: string, args: string, command: keyof typeof COMMANDS = 'model-archiver'): Ended {
  const all = [...COMMANDS[command], ...args.split(' ')];
  const { status, stdout, stderr } = spawnSync(process.execPath, all, { cwd, encoding: 'utf8' });
  return { status, stdout, stderr };
}

/** A folder with `model`, and `store` for what is made of it. */
function makeModel(t: TestContext): string {
  const folder = appFolder(t, MODEL);
  mkdirSync(join(folder, 'store'));
  chmodSync(join(folder, 'model/run.sh'), 0o755);
  linkSync(join(folder, 'model/run.sh'), join(folder, 'model/twin.sh'));
  symlinkSync('data/labels.txt', join(folder, 'model/linked.txt'));
  symlinkSync('data', join(folder, 'model/linked'));
  return folder;
}

const WISH = '--model-name cats --model-path model --handler cats:handle --export-path store';

const MANIFEST = {
  modelServerVersion: '1.0',
  implementationVersion: '1.0',
  specificationVersion: '1.0',
  runtime: 'node',
  model: { modelName: 'cats', handler: 'cats:handle' },
};

describe('the archiver', LIMIT, () => {
  for (const [format, file, command] of [
    ['default', 'cats.mar', 'banana-serve archive'],
    ['tgz', 'cats.tar.gz', 'model-archiver'],
    ['no-archive', 'cats', 'banana-serve archive'],
  ] as const)
    test(`${command} writes ${file}, which a server takes and serves`, async (t) => {
      const folder = makeModel(t);
      const { status, stdout, stderr } = run(folder, `${WISH} --archive-format ${format}`, command);
      assert.equal(stderr, `${command}: linked is neither a file nor a folder, and is left out\n`);
      assert.deepEqual(
        [status, stdout],
        [0, `Wrote store/${file}: the model cats, ${PACKED.length - 1} files.\n`],
      );
      assert.deepEqual(readdirSync(join(folder, 'store')), [file]);
      const { server, management } = await startManagedHere(
        t,
        { args: ['--drain-lag', '0s'] },
        join(folder, 'store'),
      );
      assert.equal(await management.said(`POST /models?url=${file}&initial_workers=1`), '200 Workers scaled');
      assert.deepEqual((await management.infer('cats')).json(), { kind: 'cat', labels: 'felis' });
      assert.equal((await management.describe('cats')).modelVersion, '1.0');
      await server.stop();
    });

  test('writes a zip archive that unzip takes', { skip: needs('unzip') }, (t) => {
    const folder = makeModel(t);
    assert.equal(run(folder, WISH).status, 0);
    execFileSync('unzip', ['-q', '-t', join(folder, 'store/cats.mar')]);
    execFileSync('unzip', ['-q', join(folder, 'store/cats.mar'), '-d', join(folder, 'out')]);
    assertPacked(join(folder, 'out'));
  });

  test('writes a tar archive that tar takes', { skip: needs('tar') }, (t) => {
    const folder = makeModel(t);
    assert.equal(run(folder, `${WISH} --archive-format tgz`).status, 0);
    mkdirSync(join(folder, 'out'));
    execFileSync('tar', ['-xzf', join(folder, 'store/cats.tar.gz'), '-C', join(folder, 'out')]);
    assert.deepEqual(readdirSync(join(folder, 'out')), ['cats']);
    assertPacked(join(folder, 'out/cats'));
  });

  test('writes a folder of the same files', (t) => {
    const folder = makeModel(t);
    assert.equal(run(folder, `${WISH} --archive-format no-archive`).status, 0);
    assertPacked(join(folder, 'store/cats'));
  });

  test('overwrites nothing without --force, and writes an archive whole or not at all', (t) => {
    const folder = makeModel(t);
    for (const [format, file] of [
      ['default', 'cats.mar'],
      ['tgz', 'cats.tar.gz'],
      ['no-archive', 'cats'],
    ] as const) {
      const args = `${WISH} --archive-format ${format}`;
      assert.equal(run(folder, args).status, 0);
      const { mtimeMs } = statSync(join(folder, 'store', file));
      const again = run(folder, args);
      assert.equal(again.status, 1);
      const said = `model-archiver: store/${file} exists already. Give --force to overwrite it, or another --export-path.\n`;
      assert.equal(again.stderr, said);
      assert.equal(statSync(join(folder, 'store', file)).mtimeMs, mtimeMs);
      assert.equal(run(folder, `${args} ${format === 'tgz' ? '-f' : '--force'}`).status, 0);
    }
    assert.deepEqual(readdirSync(join(folder, 'store')).sort(), ['cats', 'cats.mar', 'cats.tar.gz']);
  });

  test('may write into the folder of the model, and packs no archive of its own', (t) => {
    const folder = makeModel(t);
    const args = '--model-name cats --model-path . --handler cats';
    for (const format of ['tgz', 'no-archive']) {
      const all = `${args} --archive-format ${format} --force`;
      const [first, second] = [run(join(folder, 'model'), all), run(join(folder, 'model'), all)];
      assert.deepEqual([first.status, second.status], [0, 0], second.stderr);
    }
    assert.ok(!existsSync(join(folder, 'model/cats/cats')));
  });

  test('never replaces the model itself', (t) => {
    const folder = makeModel(t);
    const args = '--model-name model --model-path model --handler cats --archive-format no-archive --force';
    const { status, stderr } = run(folder, args);
    assert.equal(status, 1);
    assert.match(stderr, /^model-archiver: model would overwrite the model itself: choose another/);
    assert.ok(existsSync(join(folder, 'model/cats.ts')));
  });

  const REFUSED: readonly (readonly [args: string, status: number, said: RegExp])[] = [
    [
      WISH.replace('name cats', 'name .cats'),
      1,
      /^model-archiver: --model-name \.cats: a name must begin with a letter or a digit/,
    ],
    [
      WISH.replace('path model', 'path gone'),
      1,
      /^model-archiver: --model-path gone: there is no such folder\.$/m,
    ],
    [
      WISH.replace('path store', 'path gone'),
      1,
      /^model-archiver: --export-path gone: there is no such folder\.$/m,
    ],
    [WISH.replace('cats:handle', '../cats:handle'), 1, /the handler \.\.\/cats is outside the model\.$/m],
    [
      `${WISH} --runtime java`,
      2,
      /argument 'java' is invalid\. Allowed choices are node, python, python2, python3/,
    ],
    [`${WISH} --version 1/2`, 1, /--version 1\/2: a version must consist of up to 128 letters/],
    [`${WISH} --serialized-file gone.pt`, 1, /--serialized-file gone\.pt: there is no such file\.$/m],
    [`${WISH} --extra-files model/cats.ts,gone`, 1, /--extra-files gone: there is no such file\.$/m],
    [
      '--model-name a --handler gone --export-path store',
      1,
      /--handler gone: there is no such file; give its path/,
    ],
    [
      '--model-name a --handler image_classifier --export-path store',
      1,
      /--handler image_classifier: the built-in handlers of TorchServe are not included;/,
    ],
  ];
  for (const [args, status, said] of REFUSED)
    test(`refuses \`${args}\` with exit code ${status}, and writes nothing`, async (t) => {
      const folder = makeModel(t);
      const cwd = process.cwd();
      process.chdir(folder);
      t.after(() => process.chdir(cwd));
      const stderr: string[] = [];
      t.mock.method(process.stderr, 'write', (text: string) => stderr.push(text) > 0);
      assert.equal(await runArchiver('model-archiver', args.split(' ')), status, stderr.join(''));
      assert.match(stderr.join(''), said);
      assert.deepEqual(readdirSync(join(folder, 'store')), []);
    });

  test('takes the flags of torch-model-archiver', { skip: needs('python3') }, async (t) => {
    const folder = appFolder(t, TORCH);
    mkdirSync(join(folder, 'store'));
    const { status, stdout, stderr } = run(folder, TORCH_ARGS);
    assert.deepEqual([status, stdout, stderr], [0, 'Wrote store/net.mar: the model net, 7 files.\n', '']);
    const { server, management } = await startManagedHere(
      t,
      { args: ['--drain-lag', '0s'] },
      join(folder, 'store'),
    );
    assert.equal(await management.said('POST /models?url=net.mar&initial_workers=1'), '200 Workers scaled');
    assert.deepEqual((await management.infer('net/2.0')).json(), {
      files: ['weights', 'felis', 'deep'],
      model: {
        modelName: 'net',
        handler: 'torch_handler.py:Handler',
        modelVersion: '2.0',
        serializedFile: 'net.pt',
        modelFile: 'net.py',
        requirementsFile: 'requirements.txt',
        configFile: 'net.yaml',
      },
    });
    await server.stop();
  });

  test('packs a file once that lies in the folder of the model, and any with zip-store', (t) => {
    const folder = makeModel(t);
    const more = '--serialized-file model/data/labels.txt --extra-files model --archive-format zip-store';
    const { status, stdout } = run(folder, `${WISH} ${more}`);
    assert.deepEqual(
      [status, stdout],
      [0, `Wrote store/cats.mar: the model cats, ${PACKED.length - 1} files.\n`],
    );
    const bytes = readFileSync(join(folder, 'store/cats.mar'));
    assert.ok(bytes.includes('"serializedFile": "data/labels.txt"'), 'it is not compressed');
  });

  test('prints a note when no file is the handler, or nothing is converted, and goes on', (t) => {
    const folder = makeModel(t);
    const { status, stderr } = run(
      folder,
      `${WISH.replace('cats:handle', 'gone:handle')} --convert --runtime python`,
    );
    assert.equal(status, 0);
    assert.match(stderr, /nothing is converted\n/);
    assert.match(stderr, /no file of the model is the handler gone:handle\n/);
  });

  test('refuses files that a server would refuse', (t) => {
    const folder = makeModel(t);
    linkSync(join(folder, 'model/cats.ts'), join(folder, 'model/CATS.ts'));
    const { status, stderr } = run(folder, WISH);
    assert.equal(status, 1);
    assert.match(
      stderr,
      /the archive would not load: its entry "cats\.ts" differs from "CATS\.ts" only in case/,
    );
    assert.deepEqual(readdirSync(join(folder, 'store')), []);
  });

  test('explains itself', () => {
    const { status, stdout } = run(ROOT, '--help', 'banana-serve archive');
    assert.equal(status, 0);
    for (const flag of [
      '--model-name',
      '--model-path',
      '--handler',
      '--runtime',
      '--export-path',
      '--archive-format',
      '-f, --force',
      '-c, --convert',
    ])
      assert.ok(stdout.includes(flag), flag);
  });
});

function assertPacked(folder: string): void {
  const found = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  const names = found.map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1));
  assert.deepEqual(names.sort(), PACKED);
  assert.deepEqual(JSON.parse(readFileSync(join(folder, 'MAR-INF/MANIFEST.json'), 'utf8')), MANIFEST);
  assert.equal(readFileSync(join(folder, 'cats.ts'), 'utf8'), HANDLER);
  assert.equal(readFileSync(join(folder, 'linked.txt'), 'utf8'), 'felis');
  const isExecutable = (name: string): boolean => (statSync(join(folder, name)).mode & 0o100) !== 0;
  assert.deepEqual(['run.sh', 'twin.sh', 'cats.ts'].map(isExecutable), [true, true, false]);
}
