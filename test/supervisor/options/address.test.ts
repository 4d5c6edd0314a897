import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseHost, parsePort } from '../../../supervisor/options/address.js';
import { NotAllowed } from '../../../supervisor/options/units.js';

test('a host is any text, trimmed', () => {
  assert.equal(parseHost('127.0.0.1'), '127.0.0.1');
  assert.equal(parseHost(' ::1 '), '::1');
  for (const raw of ['', ' ', 1, null, undefined, ['::1']]) assert.throws(() => parseHost(raw), NotAllowed);
});

for (const [raw, port] of [
  ['8000', 8000],
  [' 0 ', 0],
  [65_535, 65_535],
  ['/run/model.sock', '/run/model.sock'],
  ['./model.sock', './model.sock'],
] as const) {
  test(`the port ${JSON.stringify(raw)} is read`, () => assert.equal(parsePort(raw), port));
}

for (const raw of ['', 'http', 'model.sock', 'tcp://10.0.0.1:8000', '65536', -1, 1.5, null, ['/a']]) {
  test(`the port ${JSON.stringify(raw)} is refused`, () => assert.throws(() => parsePort(raw), NotAllowed));
}
