/** The package as a stranger gets it: packed, installed in an empty folder, without this project's settings. */
import assert from 'node:assert/strict';
import { cp, mkdir, mkdtemp, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import ts from 'typescript';
import { INSTALL_LIMIT, npmInstall, packInto, run, type Packed } from '../helpers/packed.js';
import { ROOT, call, runCommand, startServer } from '../helpers/server.js';

const APP = `
import type { InferenceContext, InitContext } from 'banana-serve';

enum Mood { Happy = 'happy' }
let greeting = '';

export function init(ctx: InitContext): void {
  greeting = \`hello from worker \${ctx.worker.index}\`;
}

export async function inference(input: { name: string }, ctx: InferenceContext) {
  return { greeting, name: input.name, mood: Mood.Happy, path: ctx.path };
}
`;

const PROGRAM = `
import { serve, type ServerHandle } from 'banana-serve';

const server: ServerHandle = await serve({ app: './app.ts', host: '127.0.0.1', port: 0, logLevel: 'silent' });
await server.ready;
const reply = await fetch(server.url, { method: 'POST', body: '{"name":"program"}' });
console.log(await reply.text());
await server.close();
`;

/** Compiles under every kind of module that TypeScript knows. */
const CONSUMER = `
import { Potassium as Former, Store, serve, type AppConfig, type InferenceContext, type ServerHandle } from 'banana-serve';
import { client } from 'banana-serve/client';
import { ModelHandler, type Item } from 'banana-serve/mms';
import { Potassium, Response } from 'banana-serve/potassium';

export const config: AppConfig = { runTimeout: '30s' };
export const inference = (input: { name: string }, ctx: InferenceContext): string => input.name + ctx.path;
export const app: Potassium<{ calls: number }> = new Potassium('consumer').init(() => ({ calls: 0 }));
app.handler('/', (context) => new Response({ json: context.calls }));
export const former: Former<{ calls: number }> = app;
export class Lengths extends ModelHandler<string[]> {
  override preprocess(data: readonly Item[]): string[] {
    return data.map(({ body }) => String(body));
  }
  override inference(texts: string[]): number[] {
    return texts.map(({ length }) => length);
  }
}
export const ask = client<{ inference: typeof inference }>('http://localhost:8000');
export const asked: Promise<string> = ask({ name: 'consumer' });
export const store: Store = new Store({ backend: 'memory' });
export async function main(): Promise<number> {
  const server: ServerHandle = await serve({ app: './app.ts', runTimeout: 30 });
  return server.status().model.workers.length;
}
`;

const ENTRIES = {
  index: 'banana-serve',
  potassium: 'banana-serve/potassium',
  mms: 'banana-serve/mms',
  client: 'banana-serve/client',
};

const REQUIRING = `
(async () => {
  for (const entry of ${JSON.stringify(Object.values(ENTRIES))}) {
    const [imported, required] = [await import(entry), require(entry)];
    const names = Object.keys(imported);
    const other = names.filter((name) => imported[name] !== required[name]);
    console.log(entry, names.length > 1, other.join());
  }
})();
`;

let folder: string;
let packed: Packed;
before(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'banana-serve-package-')));
  packed = await packInto(folder);
  await writeFile(join(folder, 'package.json'), '{"name":"stranger","private":true,"type":"module"}');
  await writeFile(join(folder, 'app.ts'), APP);
  await writeFile(join(folder, 'program.ts'), PROGRAM);
  for (const type of ['commonjs', 'module']) {
    await mkdir(join(folder, type));
    await writeFile(join(folder, type, 'package.json'), JSON.stringify({ type }));
    await writeFile(join(folder, type, 'consumer.ts'), CONSUMER);
  }
  await writeFile(join(folder, 'requiring.cjs'), REQUIRING);
  await npmInstall(folder, packed.tarball);
}, INSTALL_LIMIT);
after(() => rm(folder, { recursive: true, force: true }));

test('the installed command serves a TypeScript app', async () => {
  const command = join(folder, 'node_modules/.bin/banana-serve');
  const server = await startServer('./app.ts', { cwd: folder, command });
  const answer = await call(server.url, '{"name":"stranger"}');
  assert.deepEqual(answer.json(), {
    greeting: 'hello from worker 0',
    name: 'stranger',
    mood: 'happy',
    path: '/',
  });
  assert.equal((await server.stop()).code, 0);
});

test('without onnxruntime-node a .onnx file ends the start with 2 and the command, before any worker', async () => {
  const model = join(folder, 'm.onnx');
  await cp(join(ROOT, 'examples/digits/digits.onnx'), model);
  const command = runCommand(['m.onnx', '--port', '0'], {
    cwd: folder,
    command: join(folder, 'node_modules/.bin/banana-serve'),
  });
  assert.equal((await command.ended).code, 2);
  const why = 'serving a .onnx file needs the package onnxruntime-node, which is not installed.';
  assert.equal(command.stderr(), `banana-serve: ${model}: ${why} Run: npm install onnxruntime-node\n`);
});

test('the installed archiver writes an archive', async () => {
  const args = ['--model-name', 'm', '--model-path', 'module', '--handler', 'consumer'];
  const { stdout } = await run(join(folder, 'node_modules/.bin/model-archiver'), args, { cwd: folder });
  assert.equal(stdout, 'Wrote m.mar: the model m, 2 files.\n');
});

/** `node16` finds packages as `nodenext` does. */
const CONSUMERS: readonly (readonly [type: 'commonjs' | 'module', flags: string])[] = [
  ['commonjs', '--module commonjs'],
  ['commonjs', '--module commonjs --moduleResolution node10 --ignoreDeprecations 6.0'],
  ['commonjs', '--module nodenext'],
  ['module', '--module nodenext'],
  ['module', '--module preserve'],
];

const parsed = new Map<string, ts.SourceFile | undefined>();

/** Parses a file once for all programs that read it as the same kind of module. */
function sharedHost(options: ts.CompilerOptions): ts.CompilerHost {
  const host = ts.createCompilerHost(options);
  const parse = host.getSourceFile.bind(host);
  host.getSourceFile = (path, language) => {
    const key = JSON.stringify([path, language]);
    if (!parsed.has(key)) parsed.set(key, parse(path, language));
    return parsed.get(key);
  };
  return host;
}

/** Errors of the program and of the declarations in `folder`; those of TypeScript and Node are left out. */
function problemsOf(program: ts.Program): string[] {
  const files = program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(folder));
  assert.ok(files.length > 1, 'the program has the declarations of the package');
  const problems = [
    ...program.getOptionsDiagnostics(),
    ...program.getGlobalDiagnostics(),
    ...files.flatMap((file) => [
      ...program.getSyntacticDiagnostics(file),
      ...program.getSemanticDiagnostics(file),
    ]),
  ];
  return problems.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}

/** Compiles as `tsc` with these flags does, the declarations of the package included. */
function assertCompiles(paths: readonly string[], flags: string): void {
  const strict = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--target', 'es2022'];
  const types = ['--types', 'node', '--typeRoots', join(ROOT, 'node_modules/@types')];
  const { options, errors } = ts.parseCommandLine([...strict, ...types, ...flags.split(' ')]);
  assert.deepEqual(errors, []);
  assert.deepEqual(problemsOf(ts.createProgram(paths, options, sharedHost(options))), []);
}

for (const [type, flags] of CONSUMERS) {
  test(`a program in a package of type ${type} compiles with ${flags}`, () => {
    const own = flags === '--module nodenext' && type === 'module' ? ['app.ts', 'program.ts'] : []; // which run here
    assertCompiles(
      [`${type}/consumer.ts`, ...own].map((name) => join(folder, name)),
      flags,
    );
  });
}

test('require() gives what import gives, the same package, without a warning', async () => {
  const { stdout, stderr } = await run(process.execPath, ['requiring.cjs'], { cwd: folder });
  const lines = Object.values(ENTRIES).map((entry) => `${entry} true \n`);
  assert.deepEqual([stdout, stderr], [lines.join(''), '']);
});

test('the types of both faces of each entry have the same names', () => {
  const facesOf = (file: string): string[] =>
    ['d.ts', 'd.cts'].map((kind) => join(ROOT, 'dist', `${file}.${kind}`));
  const options = { module: ts.ModuleKind.NodeNext, noLib: true };
  const program = ts.createProgram(Object.keys(ENTRIES).flatMap(facesOf), options);
  for (const [file, entry] of Object.entries(ENTRIES)) {
    const [imported, required] = facesOf(file).map((path) => {
      const module = program
        .getTypeChecker()
        .getSymbolAtLocation(program.getSourceFile(path) as ts.SourceFile);
      const names = program.getTypeChecker().getExportsOfModule(module as ts.Symbol);
      return names.map(({ name }) => name).sort();
    });
    assert.deepEqual(required, imported, entry);
  }
});

test('a program can serve an app and end by itself', async () => {
  const { stdout } = await run(join(folder, 'node_modules/.bin/tsx'), ['program.ts'], {
    cwd: folder,
    timeout: 120_000,
  });
  assert.deepEqual(JSON.parse(stdout), {
    greeting: 'hello from worker 0',
    name: 'program',
    mood: 'happy',
    path: '/',
  });
});

test('the package holds the built code, docs and examples, the Python worker, the page with its licences, no sources of TypeScript and no tests, within 1.6 MB', async () => {
  const { files, size } = packed;
  for (const path of [
    'dist/front/cli.js',
    'dist/index.d.ts',
    'dist/index.d.cts',
    'examples/digits/digits.onnx',
    'worker/python/banana_worker/__main__.py',
    'worker/python/potassium/__init__.py',
    'templates/new-python/app.py.template',
    'templates/new-onnx/model.test.js.template',
    'dist/supervisor/page/licenses.txt',
    ...(await pageFiles()),
  ])
    assert.ok(files.includes(path), path);
  const unwanted =
    /^dist\/(test|bench|examples|supervisor\/page\/.*\/)|^dist\/supervisor\/(?!page\/).*\.js$|\.tsbuildinfo$|^(test|bench)\/|bert-tiny\/onnx|__pycache__|\.pyc$/;
  assert.deepEqual(
    files.filter((path) => unwanted.test(path)),
    [],
  );
  assert.ok(size < 1_600_000, `${size} bytes`);
});

/** Paths of all that the server reads for the page, as its manifest lists them. */
async function pageFiles(): Promise<string[]> {
  const folder = 'dist/supervisor/page/';
  const manifest = await readFile(join(ROOT, folder, 'manifest.json'), 'utf8');
  const names = Object.keys(JSON.parse(manifest) as object).flatMap((name) => [
    name,
    `${name}.br`,
    `${name}.gz`,
  ]);
  return ['manifest.json', ...names].map((name) => folder + name);
}

test('the page is less than 80 kB, compressed, and the licences of its parts are with it', async () => {
  const sizes = await Promise.all(
    (await pageFiles()).map(async (path) => [path, (await stat(join(ROOT, path))).size] as const),
  );
  const compressed = sizes.filter(([path]) => path.endsWith('.gz')).reduce((sum, [, size]) => sum + size, 0);
  assert.ok(compressed > 20_000 && compressed < 80_000, `${compressed} bytes`);
  const licenses = await readFile(join(ROOT, 'dist/supervisor/page/licenses.txt'), 'utf8');
  for (const text of ['preact 11', 'htm 3', 'uplot 1', 'The MIT License', 'Apache License'])
    assert.ok(licenses.includes(text), text);
});

for (const page of ['README.md', 'examples/README.md', 'docs/deploy.md', 'docs/options.md', 'CHANGELOG.md']) {
  test(`every link of ${page} leads to something in the package`, async () => {
    const text = await readFile(join(ROOT, page), 'utf8');
    const links = [...text.matchAll(/\]\((?!https?:|#)([^)#\s]+)[^)]*\)/g)].map(([, link = '']) => link);
    const missing = links.filter((link) => !packed.files.includes(join(page, '..', link)));
    assert.deepEqual(missing, []);
    if (page === 'README.md') assert.ok(links.length > 10, 'links were looked for');
  });
}

test('an example runs where the package is installed', async () => {
  const command = join(folder, 'node_modules/.bin/banana-serve');
  const example = './node_modules/banana-serve/examples/greeting/app.ts';
  const server = await startServer(example, { cwd: folder, command, env: { GREETING_INIT_MS: '1' } });
  assert.deepEqual((await call(server.url, null)).json(), { greeting: 'hello world' });
  assert.equal((await server.stop()).code, 0);
});
