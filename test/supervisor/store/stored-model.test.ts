import assert from 'node:assert/strict';
import { test } from 'node:test';
import { namedEntry, nameOfEntry } from '../../../supervisor/store/stored-model.js';

for (const [entry, name] of [
  ['digits', 'digits'],
  ['digits.mar', 'digits'],
  ['bert-tiny.tar.gz', 'bert-tiny'],
  ['app.py', 'app'],
  ['größe.zip', 'gr__e'],
] as const)
  test(`a model of ${entry} is loaded as ${name}`, () => {
    assert.equal(nameOfEntry(entry), name);
    assert.equal(namedEntry([entry], name), entry);
  });

test('a folder with a dot in its name is found by the whole name', () => {
  assert.equal(namedEntry(['bert.v2', 'bert.mar'], 'bert.v2'), 'bert.v2');
});

test('the entry of exactly the name comes before those with an extension, and before rewritten names', () => {
  assert.equal(namedEntry(['a.mar', 'a'], 'a'), 'a');
  assert.equal(namedEntry(['a-b.mar', 'a_b.mar'], 'a_b'), 'a_b.mar');
  assert.equal(namedEntry(['a-b.mar'], 'a_b'), 'a-b.mar');
});

test('no entry has another name', () => assert.equal(namedEntry(['a.mar'], 'b'), null));
