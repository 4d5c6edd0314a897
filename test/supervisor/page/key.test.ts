/** The key as the page sends it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keyHeaders, keyProtocols, storeKey } from '../../../supervisor/page/live/key.js';

test('an invisible sign that came with a copied key is sent as a wrong one: browsers would send no request', () => {
  storeKey('calls', 's3cret\u200b');
  assert.deepEqual(keyHeaders(), { 'X-Banana-Api-Key': 's3cret?' });
  assert.deepEqual(keyProtocols(), ['banana-serve', 'banana-key.czNjcmV0Pw']);
  storeKey('calls', '');
  assert.deepEqual(keyHeaders(), {});
});
