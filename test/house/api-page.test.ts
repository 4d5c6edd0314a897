/** docs/api.md, and the docstrings from which it is printed. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { API_PAGE, apiNames, apiPage, exampleErrors } from '../tools/api-page.js';

const names = apiNames();
const current = names.filter(({ isDeprecated }) => !isDeprecated);
const labels = (some: typeof names): string[] => some.map(({ entry, name }) => `${entry} ${name}`);

test('docs/api.md is current: `npm run api` writes it', async () => {
  assert.equal(readFileSync(API_PAGE, 'utf8'), await apiPage(names));
});

test('every public name has a docstring with an example', () => {
  assert.ok(current.length > 80, `${current.length} names`);
  assert.deepEqual(labels(current.filter(({ text, example }) => text === '' || example === '')), []);
});

test('every example compiles', () => {
  assert.deepEqual(exampleErrors(names), []);
});

test('a name that an entry of a family has is deprecated at the top, and no other name is', () => {
  const families = current.filter(({ entry }) => /potassium|mms/.test(entry)).map(({ name }) => name);
  const deprecated = names.filter(({ isDeprecated }) => isDeprecated);
  assert.deepEqual(
    labels(deprecated).sort(),
    [...families, 'PotassiumResponse'].map((name) => `banana-serve ${name}`).sort(),
  );
});
