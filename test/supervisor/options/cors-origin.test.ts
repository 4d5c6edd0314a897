import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseOrigins } from '../../../supervisor/options/value-forms.js';
import { NotAllowed } from '../../../supervisor/options/units.js';

const ALLOWED: readonly (readonly [raw: unknown, origins: unknown])[] = [
  ['*', '*'],
  [['*'], '*'],
  [' * ', '*'],
  ['https://app.example.com', ['https://app.example.com']],
  ['https://a.test, http://localhost:5173', ['https://a.test', 'http://localhost:5173']],
  [
    ['http://127.0.0.1:3000', 'http://[::1]:3000'],
    ['http://127.0.0.1:3000', 'http://[::1]:3000'],
  ],
  ['https://xn--bcher-kva.example', ['https://xn--bcher-kva.example']],
  ['capacitor://localhost', ['capacitor://localhost']],
  ['chrome-extension://abcdefghijklmnop', ['chrome-extension://abcdefghijklmnop']],
];
for (const [raw, origins] of ALLOWED) {
  test(`${JSON.stringify(raw)} is allowed`, () => assert.deepEqual(parseOrigins(raw), origins));
}

/** No browser sends such an origin, so it would never match. */
const REFUSED: readonly unknown[] = [
  '',
  ',',
  'https://a.test,',
  '*,https://a.test',
  ['*', 'https://a.test'],
  'null',
  'a.test',
  '//a.test',
  'https://a.test/',
  'https://a.test/page',
  'https://A.test',
  'HTTPS://a.test',
  'https://a.test:443',
  'https://*.a.test',
  'https://bücher.example',
  'https://user@a.test',
  'https://a.test https://b.test',
  'file://',
  'capacitor://local/host',
  [],
  [1],
  7,
  null,
  {},
];
for (const raw of REFUSED) {
  test(`${JSON.stringify(raw)} is refused`, () => assert.throws(() => parseOrigins(raw), NotAllowed));
}
