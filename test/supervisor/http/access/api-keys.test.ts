import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import { test } from 'node:test';
import { ApiKeys, keyOf } from '../../../../supervisor/http/access/api-keys.js';
import { digestOf } from '../../../../supervisor/options/secrets.js';

test('without keys everybody is allowed', () => {
  const keys = new ApiKeys([]);
  assert.equal(keys.required, false);
  for (const candidate of [undefined, null, '', 'x']) assert.equal(keys.allows(candidate), true);
});

test('with keys only these keys are allowed', () => {
  const keys = new ApiKeys([digestOf('old'), digestOf('new')]);
  assert.equal(keys.required, true);
  for (const candidate of ['old', 'new']) assert.equal(keys.allows(candidate), true, candidate);
  const strange = [undefined, null, '', 'ol', 'older', 'Old', 'old,new', 'old ', 'x'.repeat(1e6)];
  for (const candidate of strange) assert.equal(keys.allows(candidate), false, candidate?.slice(0, 9));
});

const HEADERS: readonly (readonly [headers: IncomingHttpHeaders, key: string | undefined])[] = [
  [{}, undefined],
  [{ 'x-banana-api-key': 'k' }, 'k'],
  [{ authorization: 'Bearer k' }, 'k'],
  [{ authorization: 'bEARER   k' }, 'k'],
  [{ 'x-banana-api-key': 'k', authorization: 'Bearer b' }, 'k'],
  [{ 'x-banana-api-key': '', authorization: 'Bearer b' }, 'b'],
  [{ authorization: 'Basic k' }, undefined],
  [{ authorization: 'Bearer' }, undefined],
  [{ authorization: 'Bearer k l' }, undefined],
  [{ authorization: 'k' }, undefined],
];
for (const [headers, key] of HEADERS) {
  test(`the key of ${JSON.stringify(headers)} is ${key}`, () =>
    assert.equal(keyOf(headers, ['x-banana-api-key']), key));
}
