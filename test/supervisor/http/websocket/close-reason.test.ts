import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ERRORS, ServeError, type ErrorCode } from '../../../../protocol/errors.js';
import { closeCodeOf, closeReason } from '../../../../supervisor/http/websocket/websocket-call.js';

test('every error has a close code that a server may send', () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    assert.ok([1001, 1008, 1011, 1013].includes(closeCodeOf(new ServeError(code))), code);
  }
});

test('a reason fits into a close frame, cut at a whole character', () => {
  for (const text of ['x'.repeat(200), 'é'.repeat(100), '🍌'.repeat(60), 'a🍌'.repeat(40)]) {
    const reason = closeReason(new ServeError('SERVE_INTERNAL', text));
    assert.ok(Buffer.byteLength(reason) <= 123);
    assert.ok(Buffer.byteLength(reason) > 119, 'no more is cut than must be');
    assert.ok(`SERVE_INTERNAL: ${text}`.startsWith(reason));
    assert.equal(Buffer.from(reason).toString(), reason);
  }
  assert.equal(closeReason(new ServeError('SERVE_NOT_FOUND', 'no')), 'SERVE_NOT_FOUND: no');
});

test("an app's refusal keeps its status in the reason; 4xx is the client's mistake in the code, too", () => {
  for (const [status, code] of [
    [409, 1008],
    [503, 1011],
  ] as const) {
    const error = new ServeError('SERVE_HTTP_ERROR', 'taken', { status });
    assert.deepEqual([closeCodeOf(error), closeReason(error)], [code, `SERVE_HTTP_ERROR: ${status} taken`]);
  }
});
