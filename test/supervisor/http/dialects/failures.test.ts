/** How each dialect says each error: a table over all codes. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ERRORS, ServeError, type ErrorCode } from '../../../../protocol/errors.js';
import type { RequestContext } from '../../../../supervisor/http/request/request-context.js';
import type { Dialect, Failure } from '../../../../supervisor/http/dialects/dialect.js';
import { MAIN_DIALECTS } from '../../../../supervisor/http/dialects/index.js';
import { HTTP_STATUS } from '../../../../supervisor/http/socket/http-status.js';

const CODES = Object.keys(ERRORS) as ErrorCode[];

/** What stands beside the content type, for the codes that have more. */
const HEADERS: Partial<Record<ErrorCode, Record<string, string>>> = {
  SERVE_UNAUTHORIZED: { 'WWW-Authenticate': 'Bearer' },
  SERVE_UNSUPPORTED_CODING: { 'Accept-Encoding': 'gzip, deflate' },
  SERVE_UPGRADE_REQUIRED: { Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' },
};

function askWith(method: string, exposeErrors = false): RequestContext {
  return {
    request: { method },
    requestId: 'id',
    backend: { options: { exposeErrors } },
  } as unknown as RequestContext;
}

function dialectOf(name: string): Dialect {
  return MAIN_DIALECTS.inOrder.find((dialect) => dialect.name === name) as Dialect;
}

function assertHouse({ status, headers, body, closes }: Failure, code: ErrorCode): void {
  assert.equal(status, HTTP_STATUS[code] ?? 500);
  assert.deepEqual(headers, { 'Content-Type': 'application/json', ...HEADERS[code] });
  const { source } = ERRORS[code];
  assert.deepEqual(JSON.parse(body.toString()), { error: { code, message: 'why', requestId: 'id', source } });
  assert.equal(closes, undefined);
}

for (const name of ['banana', 'potassium'])
  describe(`${name} says with its status and a JSON envelope:`, () => {
    for (const code of CODES)
      test(code, () => {
        const error = new ServeError(code, 'why');
        assertHouse(dialectOf(name).fail(error, 'id', askWith('POST')), code);
        assertHouse(dialectOf(name).fail(error, 'id', null), code);
      });
  });

describe('the gateway says with status 200 and a message that its clients take for an error:', () => {
  for (const code of CODES)
    test(code, () => {
      const { status, headers, body } = dialectOf('gateway').fail(
        new ServeError(code, 'why'),
        'id',
        askWith('POST'),
      );
      const reply = JSON.parse(body.toString()) as Record<string, unknown>;
      assert.deepEqual([status, headers], [200, { 'Content-Type': 'application/json' }]);
      assert.deepEqual([reply['id'], reply['code']], ['id', code]);
      const why = code === 'SERVE_UNAUTHORIZED' ? 'The apiKey is none that is known here.' : 'why';
      assert.equal(reply['message'], `inference server error: ${why}`);
    });
});

describe('a client that is none of the gateway, as its method says, is told as the house does:', () => {
  for (const code of CODES)
    test(code, () =>
      assertHouse(dialectOf('gateway').fail(new ServeError(code, 'why'), 'id', askWith('GET')), code),
    );
});

test('the stack of an app is shown only where --expose-errors says so', () => {
  const error = new ServeError('SERVE_INFERENCE_FAILED', 'why', { detail: 'Error: stack' });
  assert.equal(dialectOf('banana').fail(error, 'id', askWith('POST', true)).body.toString(), 'Error: stack');
  assertHouse(dialectOf('banana').fail(error, 'id', askWith('POST')), 'SERVE_INFERENCE_FAILED');
});

test("an error with a status of the app's choosing has that one in the house dialect", () => {
  const error = new ServeError('SERVE_INFERENCE_FAILED', 'why', { status: 513 });
  assert.equal(dialectOf('banana').fail(error, 'id', askWith('POST')).status, 513);
});

test('the status of a failed prediction is none of the house: 500', () => {
  const error = new ServeError('SERVE_INFERENCE_FAILED', 'why', { status: 513, kind: 'prediction' });
  assertHouse(dialectOf('banana').fail(error, 'id', askWith('POST')), 'SERVE_INFERENCE_FAILED');
});

test('Retry-After stands on what may be tried again', () => {
  const error = new ServeError('SERVE_QUEUE_FULL', 'why', { retryAfterS: 7 });
  assert.equal(dialectOf('banana').fail(error, 'id', askWith('POST')).headers['Retry-After'], 7);
});
