/** BANANA_TEST_RUNTIMES: the languages for which tests are defined. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chosenRuntimes } from './runtimes.js';

for (const [value, languages] of [
  ['node', ['TypeScript']],
  ['python', ['Python']],
  ['all', ['TypeScript', 'Python']],
] as const)
  test(`BANANA_TEST_RUNTIMES=${value} means ${languages.join(' and ')}`, () => {
    assert.deepEqual(
      chosenRuntimes(value).map(({ language }) => language),
      languages,
    );
  });

test('another value is an error that names the three', () => {
  assert.throws(() => chosenRuntimes('typescript'), {
    message: 'BANANA_TEST_RUNTIMES is typescript: it must be node, python, all',
  });
  assert.throws(() => chosenRuntimes(''), /must be node, python, all/);
});
