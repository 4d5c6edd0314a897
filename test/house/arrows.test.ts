/** Imports inside the supervisor, the worker and the protocol run one way: the lint rule checks rooms, this file checks files. */
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';
import { ESLint } from 'eslint';
import { ROOT } from '../helpers/server.js';

/** The folders whose rooms the lint rule knows, and the names of their lists in `eslint.config.js`. */
const FOLDERS = { supervisor: 'ROOMS', worker: 'WORKER_ROOMS', protocol: 'PROTOCOL_ROOMS' } as const;

/** Applies this one rule of `eslint.config.js`, which needs no types: they would take most of the time. */
const eslint = new ESLint({
  cwd: ROOT,
  ruleFilter: ({ ruleId }) => ruleId === 'no-restricted-imports',
  overrideConfig: { languageOptions: { parserOptions: { projectService: false } } },
});

/** The files of a folder, by their paths in it. */
function sourceFiles(folder: string): string[] {
  const names = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith('.ts'));
}

/** The files that a file needs to be loaded; with `types`, also those that it only takes types of. Dynamic imports do not count. */
function importsOf(file: string, types = true): string[] {
  const text = readFileSync(file, 'utf8');
  return [...text.matchAll(/^(?:import|export|\}) [^;]*?from '(\.[^']+)\.js';/gm)]
    .filter(([line]) => types || !/^\w+ type /.test(line))
    .map(([, path]) => normalize(join(dirname(file), `${path}.ts`)));
}

/** Finds a chain of imports that returns to its beginning; null if there is none. */
function findCircle(folder: string, files: readonly string[]): string[] | null {
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): string[] | null => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file) || !file.startsWith(folder)) return null;
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

for (const folder of Object.keys(FOLDERS)) {
  test(`no files of ${folder} import each other in a circle`, () => {
    const files = sourceFiles(folder).map((name) => join(ROOT, folder, name));
    assert.ok(files.length > 10, 'the files are found');
    assert.deepEqual(findCircle(join(ROOT, folder), files), null);
  });
}

test('the host of models loads nothing of HTTP, not even by way of others', () => {
  const host = join(ROOT, 'supervisor', 'server', 'host');
  const loaded = new Set(readdirSync(host).map((name) => join(host, name)));
  for (const file of loaded) for (const next of importsOf(file, false)) loaded.add(next);
  assert.ok(loaded.has(join(ROOT, 'supervisor', 'models', 'model.ts')), 'the imports are followed');
  const http = join(ROOT, 'supervisor', 'http');
  assert.deepEqual(
    [...loaded].filter((file) => file.startsWith(http)),
    [],
  );
});

for (const [file, code, complaint] of [
  ['supervisor/dispatch/call.ts', "import '../http/call/answer-call.js';", 'dispatch stands below http/call'],
  [
    'supervisor/http/socket/listen.ts',
    "import '../dialects/dialect.js';",
    'http/socket stands below http/dialects',
  ],
  [
    'supervisor/http/request/backend.ts',
    "import '../handler.js';",
    'http/request stands below http/handler.ts',
  ],
  [
    'supervisor/http/answer/attempts.ts',
    "import '../call/answer-call.js';",
    'http/answer stands below http/call',
  ],
  ['supervisor/http/dialects/banana.ts', "import './gateway/start.js';", 'No dialect imports another'],
  ['supervisor/http/dialects/gateway/requests.ts', "import '../banana.js';", 'No dialect imports another'],
  [
    'supervisor/http/dialects/gateway/requests.ts',
    "import '../../websocket/upgrades.js';",
    'http/dialects stands below http/websocket',
  ],
  ['supervisor/serve.ts', "import './cli.js';", 'serve.ts stands below cli.ts'],
  ['supervisor/server/listeners.ts', "import '../serve.js';", 'server stands below serve.ts'],
  ['supervisor/server/host/model-host.ts', "import '../listeners.js';", 'server/host stands below server'],
  [
    'supervisor/server/host/model-host.ts',
    "import '../../http/handler.js';",
    'The host of models knows no HTTP',
  ],
  [
    'supervisor/server/models/start-up.ts',
    "import '../host/drain.js';",
    'server/models stands below server/host',
  ],
  [
    'supervisor/status/banner.ts',
    "import '../server/models/start-up.js';",
    'status stands below server/models',
  ],
  [
    'supervisor/page/app/store.ts',
    "import '../../status/server-status.js';",
    'The page imports nothing of the server but status/live-types.ts',
  ],
  ['worker/api/types.ts', "import '../run/run-loop.js';", 'api stands below run'],
  ['worker/api/types.ts', "import './store/store.js';", 'api stands below api/store'],
  ['worker/formats/json.ts', "import '../api/store/store.js';", 'formats stands below api/store'],
  ['protocol/text/charsets.ts', "import '../wire/frame.js';", 'text stands below wire'],
] as const) {
  test(`the lint rule refuses an import upwards: ${complaint}`, async () => {
    const [result] = await eslint.lintText(`${code}\n`, { filePath: join(ROOT, file) });
    assert.match(JSON.stringify(result?.messages), new RegExp(complaint));
  });
}

test('every file of the supervisor and of the worker lies in a room of the lint rule', async () => {
  const lists = (await import(join(ROOT, 'eslint.config.js'))) as Record<string, readonly string[]>;
  for (const folder of ['supervisor', 'worker'] as const) {
    const rooms = lists[FOLDERS[folder]] ?? [];
    const isInRoom = (name: string): boolean =>
      rooms.some((room) => name === room || name.startsWith(`${room}/`));
    assert.deepEqual(
      sourceFiles(folder).filter((name) => !isInRoom(name)),
      [],
    );
  }
});

test('a room may import from the rooms below it, and its own files', async () => {
  for (const [file, code] of [
    ['supervisor/status/readiness.ts', "import '../models/model.js';"],
    ['supervisor/server/models/start-up.ts', "import './admin.js';"],
    ['worker/api/store/store.ts', "import '../types.js';"],
  ] as const) {
    const [result] = await eslint.lintText(`${code}\n`, { filePath: join(ROOT, file) });
    assert.doesNotMatch(JSON.stringify(result?.messages), /stands below/);
  }
});
