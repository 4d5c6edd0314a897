/** The languages of apps: what holds for the workers of all of them is tested with each. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { describe } from 'node:test';
import { needs } from './needs.js';
import { ROOT } from './server.js';

export type Language = 'TypeScript' | 'Python';

/**
 * The parts of a language that tests need. A fixture app of one name does the same in each of them, so that tests may
 * expect the same; where a fact has another form, it is named here. Forms are parts of regular expressions.
 */
export interface Runtime {
  readonly language: Language;
  /** Path of the fixture app of this name. */
  app(name: string): string;
  /** Path of the Potassium app with a route for every kind of answer: a file potassium.py would hide the module. */
  potassium(): string;
  /** Path of the exercise that greets. */
  greeting(): string;
  /** A place in that app's code, as messages name it. */
  place(name: string): string;
  /** A line of a stack in that app, in this function. */
  frame(name: string, fn: string): string;
  /** The call by which an app ends its own process. */
  readonly exit: string;
  /** The declaration by which an app gets batches. */
  readonly batchFunction: string;
}

const TYPESCRIPT: Runtime = {
  language: 'TypeScript',
  app: (name) => existing(`test/fixtures/apps/${name}.mjs`, `test/fixtures/apps/${name}.ts`),
  potassium: () => existing('test/fixtures/apps/potassium.mjs'),
  greeting: () => existing('examples/greeting/app.ts'),
  place: (name) => `${name}\\.mjs:\\d+:\\d+`,
  frame: (name, fn) => `at (?:Module\\.)?${fn} .*${name}\\.mjs`,
  exit: 'process\\.exit',
  batchFunction: 'inferenceBatch',
};

const PYTHON: Runtime = {
  language: 'Python',
  app: (name) => existing(`test/fixtures/python-apps/${name}.py`),
  potassium: () => existing('test/fixtures/python-apps/potassium-app.py'),
  greeting: () => existing('test/fixtures/python-apps/greeting.py'),
  place: (name) => `${name}\\.py:\\d+`,
  frame: (name, fn) => `${name}\\.py", line \\d+, in ${fn}\\n`,
  exit: 'os\\._exit',
  batchFunction: 'inference_batch',
};

/** The first of these files, below the root, that is there. */
function existing(...paths: readonly string[]): string {
  const path = paths.find((each) => existsSync(ROOT + each));
  assert.ok(path !== undefined, `fixture ${paths.join(' or ')} exists`);
  return ROOT + path;
}

const RUNTIMES = { node: [TYPESCRIPT], python: [PYTHON], all: [TYPESCRIPT, PYTHON] };

/**
 * The runtimes of `BANANA_TEST_RUNTIMES`, all by default.
 * @throws Error that names the values that are allowed.
 */
export function chosenRuntimes(value = process.env['BANANA_TEST_RUNTIMES'] ?? 'all'): readonly Runtime[] {
  if (value === 'node' || value === 'python' || value === 'all') return RUNTIMES[value];
  throw new Error(`BANANA_TEST_RUNTIMES is ${value}: it must be ${Object.keys(RUNTIMES).join(', ')}`);
}

/** Defines these tests once for each language that `BANANA_TEST_RUNTIMES` chooses. */
export function withEachRuntime(define: (runtime: Runtime) => void): void {
  for (const runtime of chosenRuntimes()) {
    const skip = runtime === PYTHON && needs('python3');
    describe(`workers in ${runtime.language}`, { skip }, () => define(runtime));
  }
}

/**
 * Defines these tests once, with apps in TypeScript: for what the front does alone. Its files are the same for workers
 * in every language: test/house/languages.test.ts keeps them free of Python.
 */
export function withOneRuntime(define: (runtime: Runtime) => void): void {
  define(TYPESCRIPT);
}
