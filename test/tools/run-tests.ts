/**
 * Runs groups of test files (groups.ts), or single files: `node dist/test/tools/run-tests.js GROUP|FILE...`, after the
 * compile. Behind Node's own report it prints the slowest files and the failed tests. A run in which no test passed fails.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { ROOT } from '../helpers/server.js';
import type { FileTime } from './cpu-time.js';
import { filesOf, GROUPS } from './groups.js';
import type { Outcome } from './outcome-reporter.js';
import { pathPastShim } from './python-shim.js';
import { shareProcesses, shareServerProcesses } from './shared-process.js';

const COMPILED = `${ROOT}dist/test/`;
const SLOWEST = 10;

/** Most tests wait for processes and timers half of the time. */
const FILES_AT_ONCE = Math.max(4, 3 * availableParallelism());

async function main(): Promise<number> {
  const names = process.argv.slice(2);
  if (names.length === 0) throw new Error(`name a group or a file; groups: ${GROUPS.join(', ')}`);
  if (names.flatMap(compiledFiles).some((file) => file.startsWith(COMPILED))) prepareServers();
  const folder = mkdtempSync(join(tmpdir(), 'banana-test-run-'));
  try {
    const files = sharedWhere(names, folder);
    const [timesFile, outcomesFile] = [join(folder, 'times'), join(folder, 'outcomes')];
    const status = await runNode(files, timesFile, outcomesFile);
    printSlowest(linesOf<FileTime>(timesFile));
    return printOutcomes(linesOf<Outcome>(outcomesFile)) ? status : 1;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The files to run: those of groups share processes, where they can. A file that was named has its own. */
function sharedWhere(names: readonly string[], folder: string): string[] {
  const isGroup = (name: string): boolean => GROUPS.some((each) => each === name);
  const filesOfSome = (is: (name: string) => boolean): string[] => names.filter(is).flatMap(compiledFiles);
  return [
    ...shareProcesses(
      filesOfSome((name) => name === 'units'),
      folder,
    ),
    ...shareServerProcesses(
      filesOfSome((name) => isGroup(name) && name !== 'units'),
      folder,
    ),
    ...filesOfSome((name) => !isGroup(name)),
  ];
}

/** Prepares what tests of this project start. */
function prepareServers(): void {
  process.env['PATH'] = pathPastShim(process.env['PATH'] ?? '');
  process.env['BANANA_SPARES'] ??= '0'; // a second start of Node or Python with each of a thousand servers
  bundleFront();
  compilePython();
}

/** Bundles the compiled supervisor: a bundle of an earlier compile would be tested unnoticed. */
function bundleFront(): void {
  const { status } = spawnSync(process.execPath, [`${ROOT}supervisor/build.mjs`], { stdio: 'inherit' });
  if (status !== 0) throw new Error('the supervisor cannot be bundled');
}

/**
 * Compiles the Python worker, where Python is here. Under PYTHONDONTWRITEBYTECODE, which images of Docker set, each worker
 * would compile it again, which takes about 0.1 s of CPU.
 */
function compilePython(): void {
  spawnSync('python3', ['-m', 'compileall', '-q', `${ROOT}worker/python`], { stdio: 'ignore' });
}

/** Absolute paths of the compiled files of a group, or of one file, named by its source or as it is. */
function compiledFiles(name: string): string[] {
  const group = GROUPS.find((each) => each === name);
  if (group !== undefined) return filesOf(group).map(compiled);
  const file = resolve(name);
  if (!existsSync(file)) throw new Error(`${name} is no file, and no group of tests: ${GROUPS.join(', ')}`);
  return [file.endsWith('.ts') ? compiled(relative(`${ROOT}test`, file)) : file];
}

function compiled(source: string): string {
  return COMPILED + source.replace(/\.ts$/, '.js');
}

/** Resolves to the exit status; that of a process that a signal has ended is 1. */
function runNode(files: readonly string[], timesFile: string, outcomesFile: string): Promise<number> {
  const args = [
    '--test',
    `--test-concurrency=${FILES_AT_ONCE}`,
    `--import=${moduleUrl('no-processes.js')}`,
    `--import=${moduleUrl('cpu-time.js')}`,
    `--test-reporter=${process.stdout.isTTY ? 'spec' : 'tap'}`,
    '--test-reporter-destination=stdout',
    `--test-reporter=${moduleUrl('outcome-reporter.js')}`,
    `--test-reporter-destination=${outcomesFile}`,
    ...files,
  ];
  const env = { ...process.env, BANANA_TEST_TIMES: timesFile, BANANA_TEST_RUN: dirname(timesFile) };
  const child = spawn(process.execPath, args, { stdio: 'inherit', env });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', (code) => resolve(code ?? 1));
  });
}

function moduleUrl(name: string): string {
  return new URL(name, import.meta.url).href;
}

function linesOf<T>(file: string): T[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as T);
}

function printSlowest(times: readonly FileTime[]): void {
  const slowest = times.toSorted((a, b) => b.cpuSeconds - a.cpuSeconds).slice(0, SLOWEST);
  print(`\nThe slowest of ${times.length} files, in seconds:\n   CPU    wall  file`);
  for (const { file, cpuSeconds, wallSeconds } of slowest)
    print(`${seconds(cpuSeconds)} ${seconds(wallSeconds)}  ${sourceOf(file)}`);
  const sum = times.reduce((total, { cpuSeconds }) => total + cpuSeconds, 0);
  print(`${seconds(sum)}${' '.repeat(9)} all ${times.length} files`);
}

/** Prints the totals and what is red; whether tests have passed and nothing is red. */
function printOutcomes(outcomes: readonly Outcome[]): boolean {
  const red = outcomes.filter(({ kind }) => kind === 'failed' || kind === 'empty');
  if (red.length > 0) print(`\nFailed, ${red.length}:`);
  for (const { kind, name, file } of red)
    print(kind === 'empty' ? `  ${sourceOf(file)} has no test` : `  ${sourceOf(file)}: ${name}`);
  const passed = outcomes.filter(({ kind }) => kind === 'passed').length;
  if (passed === 0) print('\nNo test has passed.');
  return passed > 0 && red.length === 0;
}

function seconds(value: number): string {
  return value.toFixed(1).padStart(7);
}

/** Path of the compiled file's source, from the root. */
function sourceOf(file: string): string {
  const path = relative(COMPILED, file);
  return path.startsWith('..') ? file : `test/${path.replace(/\.js$/, '.ts')}`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

process.exitCode = await main();
