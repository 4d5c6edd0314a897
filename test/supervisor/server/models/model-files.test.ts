/** ModelFiles: when the files of a model are given back to the store. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../../../../protocol/errors.js';
import { outcomeOf, type Outcome } from '../../../../supervisor/models/outcome.js';
import { ModelFiles } from '../../../../supervisor/server/models/model-files.js';

const done = (): Promise<Outcome> => Promise.resolve(outcomeOf(1, 1, null));
const fails = (): Promise<Outcome> => Promise.resolve(outcomeOf(1, 1, new ServeError('SERVE_INIT_FAILED')));

function lend(): { files: ModelFiles; given: string[]; release: (name: string) => () => void } {
  const given: string[] = [];
  const release = (name: string) => (): void => void given.push(name);
  return { files: new ModelFiles(release('first')), given, release };
}

test('a change that succeeds gives back the files before it, and the end of the model those after it', async () => {
  const { files, given, release } = lend();
  await files.exchange(release('second'), false, done);
  assert.deepEqual(given, ['first']);
  files.close();
  assert.deepEqual(given, ['first', 'second']);
});

test('a change that fails gives back nothing, because workers may use both, until one succeeds', async () => {
  const { files, given, release } = lend();
  await files.exchange(release('second'), false, fails);
  assert.deepEqual(given, []);
  await files.exchange(release('third'), false, done);
  assert.deepEqual(given, ['first', 'second']);
});

test('a change of options alone keeps the files', async () => {
  const { files, given, release } = lend();
  await files.exchange(release('second'), true, done);
  assert.deepEqual(given, []);
  files.close();
  assert.deepEqual(given, ['first', 'second']);
});
