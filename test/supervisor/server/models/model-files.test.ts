/** ModelFiles: when the files of a model are given back to the store. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ModelFiles } from '../../../../supervisor/server/models/model-files.js';

/** `succeeds`: tells of each change that it has succeeded. */
function lend(...names: readonly string[]): { files: ModelFiles; given: string[]; succeeds: (() => void)[] } {
  const given: string[] = [];
  const nothing = (): void => {};
  const [first = nothing, ...changes] = names.map((name) =>
    name === '' ? nothing : (): void => void given.push(name),
  );
  const files = new ModelFiles(first);
  return { files, given, succeeds: changes.map((release) => files.lend(release)) };
}

test('a change that succeeds gives back the files before it, and the end of the model those after it', () => {
  const { files, given, succeeds } = lend('first', 'second');
  succeeds[0]!();
  assert.deepEqual(given, ['first']);
  files.close();
  assert.deepEqual(given, ['first', 'second']);
});

test('a change that fails gives back nothing, because workers may use both, until one succeeds', () => {
  const { given, succeeds } = lend('first', 'second', 'third');
  assert.deepEqual(given, []);
  succeeds[1]!();
  assert.deepEqual(given, ['first', 'second']);
});

test('a change keeps the files of one that waits behind it', () => {
  const { given, succeeds } = lend('first', 'second', 'third');
  succeeds[0]!();
  assert.deepEqual(given, ['first']);
});

test('changes without files of their own are not mistaken for each other', () => {
  const { given, succeeds } = lend('', 'failed', '');
  succeeds[1]!();
  assert.deepEqual(given, ['failed']);
});
