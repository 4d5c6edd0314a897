/**
 * The part of `npm run check` that is about Python: the format, names that are unknown or unused, the direction of imports, the beginnings of texts,
 * and types in every version that the worker runs on. With `--write`, files that are not formatted are, and the tables of the worker are printed. Needs no Python: the formatter is a
 * WebAssembly module, the type checker a program of Node's.
 */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { PositionEncoding, Workspace, type Diagnostic } from '@astral-sh/ruff-wasm-nodejs';
import { PYTHON_VERSIONS } from '../helpers/pythons.js';
import { ROOT } from '../helpers/server.js';
import { importProblems } from './python-imports.js';
import { areTablesCurrent } from './python-tables.js';
import { textProblems } from './python-texts.js';

const TYPED = 'worker/python';
const FOLDERS = [
  TYPED,
  'test/python',
  'test/python_pytest',
  'test/fixtures/python',
  'test/fixtures/python-apps',
  'examples/python',
];

/** Folders whose docstrings and comments people read. */
const READ = [TYPED, 'test/python', 'test/python_pytest', 'examples/python', 'templates'];

/** A file that no Python can read, on purpose. */
const BROKEN = 'test/fixtures/python-apps/syntax-error.py';

const RULES = {
  'line-length': 120,
  'target-version': 'py38',
  lint: { select: ['F', 'E9', 'B006', 'B904'] },
} as const;

async function main(): Promise<number> {
  const isWriting = process.argv.includes('--write');
  if (isWriting) areTablesCurrent(isWriting);
  const ruff = new Workspace(RULES, PositionEncoding.Utf16);
  const problems = pythonFiles().flatMap((path) => [
    ...formatProblems(ruff, path, isWriting),
    ...(ruff.check(readFileSync(path, 'utf8')) as Diagnostic[]).map((found) => textOf(path, found)),
  ]);
  problems.push(
    ...importProblems(workerSources()),
    ...readTexts().flatMap(([path, source]) => textProblems(path, source)),
  );
  if (!isWriting) problems.push(...(await typeProblems()));
  for (const problem of problems) process.stdout.write(`${problem}\n`);
  return problems.length === 0 ? 0 : 1;
}

function pythonFiles(): string[] {
  return FOLDERS.filter((folder) => existsSync(join(ROOT, folder))).flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.py'))
      .map((name) => join(ROOT, folder, name))
      .filter((path) => path !== join(ROOT, BROKEN)),
  );
}

/** The worker's sources by their paths from its folder. */
function workerSources(): Map<string, string> {
  const files = pythonFiles().filter((path) => path.startsWith(join(ROOT, TYPED)));
  return new Map(files.map((path) => [relative(join(ROOT, TYPED), path), readFileSync(path, 'utf8')]));
}

/** Paths and sources of the files that people read, templates among them. */
function readTexts(): [string, string][] {
  const files = READ.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.py(\.template)?$/.test(name))
      .map((name) => join(folder, name)),
  );
  return files.map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]);
}

function formatProblems(ruff: Workspace, path: string, isWriting: boolean): string[] {
  const before = readFileSync(path, 'utf8');
  const after = ruff.format(before);
  if (after === before) return [];
  if (!isWriting) return [`${relative(ROOT, path)} is not formatted: npm run format`];
  writeFileSync(path, after);
  return [];
}

function textOf(path: string, { start_location, code, message }: Diagnostic): string {
  return `${relative(ROOT, path)}:${start_location.row}: ${message} (${code ?? 'no code'})`;
}

/**
 * All files are checked in the oldest and in the newest version. What both have, the versions between have too, so in
 * these only the files that do different things in different versions are checked: a tenth of the time.
 */
async function typeProblems(): Promise<string[]> {
  const newest = PYTHON_VERSIONS.length - 1;
  const dependent = [...workerSources()].filter(([, text]) => text.includes('sys.version_info'));
  const files = dependent.map(([name]) => join(TYPED, name));
  const problems: string[] = [];
  for (const [i, version] of PYTHON_VERSIONS.entries())
    problems.push(...(await typeProblemsIn(version, i === 0 || i === newest ? [] : files)));
  return problems;
}

/**
 * Checks these files, or all of them if none is named. Packages that may be installed here are not looked at: what is
 * found must be the same everywhere.
 */
async function typeProblemsIn(version: string, files: readonly string[]): Promise<string[]> {
  const args = [
    join(ROOT, 'node_modules/pyright/index.js'),
    ...['-p', TYPED, '--pythonversion', version, '--pythonpath', '/bin/false'],
    ...files,
  ];
  try {
    await promisify(execFile)(process.execPath, args, { cwd: ROOT, maxBuffer: 64 * 1024 ** 2 });
    return [];
  } catch (thrown) {
    const { stdout = '', message } = thrown as Error & { stdout?: string };
    return [`Python ${version}:\n${stdout.trim() === '' ? message : stdout.trim()}`];
  }
}

process.exitCode = await main();
