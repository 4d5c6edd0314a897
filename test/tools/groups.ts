/** Groups of test files, by the names that `run-tests.ts` takes. */
import { existsSync, readdirSync } from 'node:fs';
import { sep } from 'node:path';
import { ROOT } from '../helpers/server.js';

const FOLDERS = ['promises', 'wire', 'processes', 'e2e'] as const;

/**
 * Tests beyond `npm test` that a new version of Node may break: `.ci/run` runs these on the newest LTS too. Names
 * are paths below `test/`, without `.test.ts`. Other tests depend on our own code, on Python or on documents.
 */
export const NODE_DEPENDENT: Readonly<Record<string, readonly string[]>> = {
  'http: parsing, bodies, compression, connections that end in every way': [
    'e2e/http-requests',
    'e2e/http-broken-tails',
    'e2e/http-codings',
    'e2e/http-limits',
    'e2e/http-streams',
    'e2e/dialect-connections',
    'e2e/hostile-bodies',
    'e2e/tiny-chunks',
    'e2e/pipelining',
    'e2e/front-slices',
    'e2e/clients-v6',
    'e2e/survival-readers',
    'e2e/survival-clients',
  ],
  'sockets: unix sockets, descriptors, pipes, requests that the server sends': [
    'e2e/management-listener',
    'e2e/lost-descriptors',
    'e2e/survival-output',
    'e2e/survival-names',
    'e2e/webhooks',
    'processes/supervisor/store/download',
    'processes/worker/main',
    'wire/node',
  ],
  'WebSockets: upgrades, and the raw socket behind them': [
    'e2e/hostile-websockets',
    'e2e/potassium-websocket',
  ],
  "TLS: Node's own OpenSSL": ['e2e/tls', 'processes/supervisor/options/tls'],
  'watching: fs.watch': ['e2e/watch-files'],
  'loading: import, require, TypeScript, the package as it is installed, and the native modules': [
    'e2e/app-exports',
    'e2e/anywhere',
    'e2e/guarded-serve',
    'e2e/command-serve',
    'e2e/package',
    'processes/worker/load-app',
    'processes/worker/onnx/datatypes',
    'processes/worker/onnx/onnx-model',
    'processes/worker/api/store/local',
    'processes/worker/api/store/local-opens',
    'processes/worker/api/store/process-end',
    'e2e/jobs-local',
  ],
  'survival: children, signals, exit codes, timers after a suspension': [
    'e2e/survival-deaths',
    'e2e/survival-drain',
    'e2e/survival-hangs',
    'e2e/survival-killers',
    'e2e/survival-orphans',
    'e2e/survival-suspension',
    'e2e/started-by',
    'processes/supervisor/processes/begun-file',
    'processes/supervisor/processes/orphan-guard',
    'processes/supervisor/observe/log-file',
  ],
};

export const GROUPS = ['units', ...FOLDERS, 'node'] as const;

export type Group = (typeof GROUPS)[number];

/**
 * Paths of the group's sources below `test/`, in order; `units` are all files outside of the folders of the others.
 * @throws Error if the group has no file, or names one that is missing: a run without tests must not be green.
 */
export function filesOf(group: Group): string[] {
  const files =
    group === 'node' ? nodeDependent() : testFiles().filter((file) => folderGroup(file) === group);
  if (files.length === 0) throw new Error(`the group ${group} has no test file`);
  const missing = files.filter((file) => !existsSync(`${ROOT}test/${file}`));
  if (missing.length > 0)
    throw new Error(`the group ${group} names files that are missing: ${missing.join(', ')}`);
  return files;
}

function testFiles(): string[] {
  return readdirSync(`${ROOT}test`, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts') && !file.startsWith('fixtures'))
    .map((file) => file.replaceAll(sep, '/'))
    .sort();
}

function folderGroup(file: string): Group {
  return FOLDERS.find((folder) => file.startsWith(`${folder}/`)) ?? 'units';
}

function nodeDependent(): string[] {
  return Object.values(NODE_DEPENDENT).flatMap((names) => names.map((name) => `${name}.test.ts`));
}
