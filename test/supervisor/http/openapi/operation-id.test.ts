/** Names of operations: as a person would write them, and no two of a document alike. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { operationIdOf, uniqueIds } from '../../../../supervisor/http/openapi/operation.js';

for (const [about, id] of [
  [['digits', '/'], 'callDigits'],
  [['digits', '', 'V2'], 'callDigitsV2'],
  [['fill-mask', '/a_b/c'], 'callFillMaskABC'],
  [['modèle', '/2.0'], 'callModele20'],
  [['日本', '/{a}?#'], 'callA'],
] as const)
  test(`${about.join(' ')} is ${id}`, () => assert.equal(operationIdOf('call', ...about), id));

test('of names that are alike, the later ones are numbered', () => {
  const unique = uniqueIds();
  assert.deepEqual(
    ['callA', 'callB', 'callA', 'callA'].map((id) => unique(id)),
    ['callA', 'callB', 'callA_2', 'callA_3'],
  );
});

test('two operations never have the same name', () => {
  const words = fc.array(fc.constantFrom('/', '_', '-', 'a', 'A', '2', 'ü', '日', '_2', 'é'), {
    maxLength: 4,
  });
  fc.assert(
    fc.property(fc.array(words, { maxLength: 20 }), (all) => {
      const unique = uniqueIds();
      const made = all.map((about) => unique(operationIdOf('call', ...about)));
      assert.equal(new Set(made).size, made.length);
      for (const id of made) assert.match(id, /^[a-zA-Z]\w*$/);
    }),
  );
});
