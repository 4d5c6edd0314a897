/** ModelFiles: when the files of a model are given back to the store. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ModelFiles } from '../../../../supervisor/server/models/model-files.js';

function lend(...names: readonly string[]): { files: ModelFiles; given: string[]; releases: (() => void)[] } {
  const given: string[] = [];
  const [first = () => {}, ...changes] = names.map((name) => (): void => void given.push(name));
  const files = new ModelFiles(first);
  for (const release of changes) files.lend(release);
  return { files, given, releases: changes };
}

test('a change that succeeds gives back the files before it, and the end of the model those after it', () => {
  const { files, given, releases } = lend('first', 'second');
  files.giveBackBefore(releases[0] as () => void);
  assert.deepEqual(given, ['first']);
  files.close();
  assert.deepEqual(given, ['first', 'second']);
});

test('a change that fails gives back nothing, because workers may use both, until one succeeds', () => {
  const { files, given, releases } = lend('first', 'second', 'third');
  assert.deepEqual(given, []);
  files.giveBackBefore(releases[1] as () => void);
  assert.deepEqual(given, ['first', 'second']);
});

test('a change keeps the files of one that waits behind it', () => {
  const { files, given, releases } = lend('first', 'second', 'third');
  files.giveBackBefore(releases[0] as () => void);
  assert.deepEqual(given, ['first']);
});
