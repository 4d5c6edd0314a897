import assert from 'node:assert/strict';
import { test } from 'node:test';
import { moveKeyProtocol } from '../../../../supervisor/http/access/api-keys.js';

const K = `banana-key.${Buffer.from('s3cret').toString('base64url')}`;
const BEARER = 'Bearer s3cret';

/** A handshake with these lines of protocols, as Node parses them. */
function handshake(lines: readonly string[], others: Record<string, string> = {}) {
  const headers: Record<string, string> = { host: 'test', ...others };
  if (lines.length > 0) headers['sec-websocket-protocol'] = lines.join(', ');
  const rawHeaders = ['Host', 'test', ...lines.flatMap((line) => ['Sec-WebSocket-Protocol', line])];
  return { headers, rawHeaders };
}

const CASES: readonly (readonly [sent: readonly string[], left: readonly string[]])[] = [
  [[`${K}, banana-serve`], ['banana-serve']],
  [[`chat,${K},chat.v2`], ['chat, chat.v2']],
  [[K, 'chat'], ['chat']],
  [[K], []],
  [[`${K}, banana-key.b3RoZXI, chat`], ['chat']],
];
for (const [sent, left] of CASES)
  test(`the protocols ${JSON.stringify(left)} of ${JSON.stringify(sent)} are left beside the key`, () => {
    const request = handshake(sent);
    assert.equal(moveKeyProtocol(request, ['x-banana-api-key']), true);
    assert.deepEqual(request, {
      ...handshake(left),
      headers: { ...handshake(left).headers, authorization: BEARER },
    });
  });

test('a handshake without a key protocol is left as it is', () => {
  for (const lines of [[], ['chat, banana-serve'], ['banana-key']]) {
    const request = handshake(lines);
    assert.equal(moveKeyProtocol(request, ['x-banana-api-key']), false);
    assert.deepEqual(request, handshake(lines));
  }
});

test('a key in another header counts first; a user and password do not', () => {
  for (const [others, authorization] of [
    [{ 'x-banana-api-key': 'other' }, undefined],
    [{ authorization: 'Bearer other' }, 'Bearer other'],
    [{ authorization: 'Basic eDp5' }, BEARER],
  ] as const) {
    const request = handshake([K], others);
    moveKeyProtocol(request, ['x-banana-api-key']);
    assert.equal(request.headers['authorization'], authorization);
  }
});
