import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseWantedModels } from '../../../supervisor/options/value-forms.js';
import { NotAllowed } from '../../../supervisor/options/units.js';

const READ: readonly (readonly [given: unknown, read: ReturnType<typeof parseWantedModels>])[] = [
  ['all', 'all'],
  [' ALL ', 'all'],
  [['All'], 'all'],
  ['none', []],
  ['None', []],
  ['digits', [{ name: null, url: 'digits' }]],
  [
    'digits, cats = zoo/cats ',
    [
      { name: null, url: 'digits' },
      { name: 'cats', url: 'zoo/cats' },
    ],
  ],
  [
    ['a=b=c', 'd,e'],
    [
      { name: 'a', url: 'b=c' },
      { name: null, url: 'd' },
      { name: null, url: 'e' },
    ],
  ],
  ['http://host/m?a=b', [{ name: null, url: 'http://host/m?a=b' }]],
];

for (const [given, read] of READ) {
  test(`${JSON.stringify(given)} names ${JSON.stringify(read)}`, () => {
    assert.deepEqual(parseWantedModels(given), read);
  });
}

for (const given of ['', 'a,', '=a', 'a=', 'my cat=zoo', [], [5], 5, null, {}]) {
  test(`${JSON.stringify(given)} names no models and is refused`, () => {
    assert.throws(() => parseWantedModels(given), NotAllowed);
  });
}
