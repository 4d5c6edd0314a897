/** The Python worker has the same list of model options as the server. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ROOT } from '../helpers/server.js';

/** The strings of a tuple in a Python file. */
function namesIn(file: string, tuple: string): string[] {
  const source = readFileSync(`${ROOT}worker/python/banana_worker/${file}`, 'utf8');
  const [, body = ''] = new RegExp(`^${tuple} = \\(([^)]*)\\)`, 'm').exec(source) ?? [];
  return [...body.matchAll(/"(\w+)"/g)].map(([, name]) => name as string);
}

test('a `config` in Python is distinguished from another dict by the options that a model may set', () => {
  const types = readFileSync(`${ROOT}protocol/option-types.ts`, 'utf8');
  const [, body = ''] = /export interface ModelOptionTypes<Duration> \{([^}]*)\}/.exec(types) ?? [];
  const options = [...body.matchAll(/^ {2}(\w+):/gm)].map(([, name]) => name as string);
  assert.ok(options.includes('runTimeout'));
  assert.deepEqual(namesIn('adapters/exports.py', 'MODEL_OPTIONS').sort(), options.sort());
});
