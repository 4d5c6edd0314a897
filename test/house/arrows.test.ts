/** Imports inside the supervisor run one way: between its rooms by the lint rule, between files by what is checked here. */
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';
import { ESLint } from 'eslint';
import { ROOT } from '../helpers/server.js';

const SUPERVISOR = join(ROOT, 'supervisor');

function sourceFiles(): string[] {
  const names = readdirSync(SUPERVISOR, { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith('.ts')).map((name) => join(SUPERVISOR, name));
}

/** The files that a file needs to be loaded; types alone count too, dynamic imports do not. */
function importsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8');
  return [...text.matchAll(/^(?:import|export|\}) [^;]*?from '(\.[^']+)\.js';/gm)].map(([, path]) =>
    normalize(join(dirname(file), `${path}.ts`)),
  );
}

/** A chain of imports that comes back to its beginning; null if there is none. */
function findCircle(files: readonly string[]): string[] | null {
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): string[] | null => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file) || !file.startsWith(SUPERVISOR)) return null;
    for (const next of importsOf(file)) {
      const circle = visit(next, [...path, file]);
      if (circle !== null) return circle;
    }
    done.add(file);
    return null;
  };
  for (const file of files) {
    const circle = visit(file, []);
    if (circle !== null) return circle;
  }
  return null;
}

test('no files of the supervisor import each other in a circle', () => {
  const files = sourceFiles();
  assert.ok(files.length > 100, 'the files are found');
  assert.deepEqual(findCircle(files), null);
});

for (const [file, code, complaint] of [
  ['supervisor/dispatch/job.ts', "import '../http/call/backend.js';", 'dispatch stands below http/call'],
  [
    'supervisor/http/socket/listen.ts',
    "import '../dialects/dialect.js';",
    'http/socket stands below http/dialects',
  ],
  ['supervisor/http/call/backend.ts', "import '../handler.js';", 'http/call stands below http/handler.ts'],
  ['supervisor/http/dialects/banana.ts', "import './gateway/start.js';", 'No dialect imports another'],
  ['supervisor/http/dialects/gateway/start.ts', "import '../banana.js';", 'No dialect imports another'],
  [
    'supervisor/http/dialects/gateway/start.ts',
    "import '../../websocket/upgrades.js';",
    'http/dialects stands below http/websocket',
  ],
  ['supervisor/serve.ts', "import './cli.js';", 'serve.ts stands below cli.ts'],
  ['supervisor/server/drain.ts', "import '../serve.js';", 'server stands below serve.ts'],
] as const) {
  test(`the lint rule refuses an import upwards: ${complaint}`, async () => {
    const eslint = new ESLint({ cwd: ROOT });
    const [result] = await eslint.lintText(`${code}\n`, { filePath: join(ROOT, file) });
    assert.match(JSON.stringify(result?.messages), new RegExp(complaint));
  });
}

test('every room of the supervisor stands in the list of the lint rule', async () => {
  const { ROOMS } = (await import(join(ROOT, 'eslint.config.js'))) as { ROOMS: readonly string[] };
  const missing = sourceFiles()
    .map((file) => file.slice(SUPERVISOR.length + 1))
    .filter((name) => !ROOMS.some((room) => name === room || name.startsWith(`${room}/`)));
  assert.deepEqual(missing, []);
});
