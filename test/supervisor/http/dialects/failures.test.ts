/** The form of each error in each dialect: a table over all codes. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ERRORS, ServeError, type ErrorCode } from '../../../../protocol/errors.js';
import type { RequestContext } from '../../../../supervisor/http/request/request-context.js';
import type { Dialect, Failure } from '../../../../supervisor/http/dialects/dialect.js';
import { MAIN_DIALECTS } from '../../../../supervisor/http/dialects/index.js';

const CODES = Object.keys(ERRORS) as ErrorCode[];

/** Headers besides the content type, for the codes that have more. */
const HEADERS: Partial<Record<ErrorCode, Record<string, string>>> = {
  SERVE_UNAUTHORIZED: { 'WWW-Authenticate': 'Bearer' },
  SERVE_UNSUPPORTED_CODING: { 'Accept-Encoding': 'gzip, deflate' },
  SERVE_UPGRADE_REQUIRED: { Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' },
};

function askWith(method: string, exposeErrors = false, headers: object = {}): RequestContext {
  return {
    request: { method, headers },
    requestId: 'id',
    backend: { options: { exposeErrors } },
  } as unknown as RequestContext;
}

function dialectOf(name: string): Dialect {
  return MAIN_DIALECTS.inOrder.find((dialect) => dialect.name === name) as Dialect;
}

function assertHouse({ status, headers, body, closes }: Failure, code: ErrorCode): void {
  assert.equal(status, ERRORS[code].status ?? 500);
  assert.deepEqual(headers, { 'Content-Type': 'application/json', ...HEADERS[code] });
  const { source } = ERRORS[code];
  const { begun } = new ServeError(code);
  const error = { code, message: 'why', requestId: 'id', source, begun };
  assert.deepEqual(JSON.parse(body.toString()), { error });
  assert.equal(closes, undefined);
}

for (const name of ['banana', 'potassium'])
  describe(`${name} sends with its status and a JSON envelope:`, () => {
    for (const code of CODES)
      test(code, () => {
        const error = new ServeError(code, 'why');
        assertHouse(dialectOf(name).fail(error, 'id', askWith('POST')), code);
        assertHouse(dialectOf(name).fail(error, 'id', null), code);
      });
  });

describe('the gateway sends with status 200 and a message that its clients recognize as an error:', () => {
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
      const why = code === 'SERVE_UNAUTHORIZED' ? 'The apiKey is not valid.' : 'why';
      assert.equal(reply['message'], `inference server error: ${why}`);
    });
});

describe('a client with a method that the gateway does not have gets the form of the house dialect:', () => {
  for (const code of CODES)
    test(code, () =>
      assertHouse(dialectOf('gateway').fail(new ServeError(code, 'why'), 'id', askWith('GET')), code),
    );
});

for (const name of ['open-inference', 'kserve-v1'])
  describe(`${name} sends with its status and the message as the only field:`, () => {
    const { fail } = dialectOf(name);
    for (const code of CODES)
      test(code, () => {
        for (const context of [askWith('POST'), null]) {
          const { status, headers, body, closes } = fail(new ServeError(code, 'why'), 'id', context);
          assert.equal(status, code === 'SERVE_INPUT_INVALID' ? 400 : (ERRORS[code].status ?? 500));
          assert.deepEqual(headers, { 'Content-Type': 'application/json', ...HEADERS[code] });
          assert.deepEqual([JSON.parse(body.toString()), closes], [{ error: 'why' }, undefined]);
        }
      });
  });

describe('cog sends a failed prediction with status 200, a wrong body as a list, anything else as a text:', () => {
  const FAILED =
    /^SERVE_(?:INFERENCE_(?:FAILED|TIMEOUT)|HTTP_ERROR|OUTPUT_(?:INVALID|TOO_LARGE)|WORKER_LOST)$/;
  const listed = (...at: string[]) => [{ loc: ['body', ...at], msg: 'why', type: 'value_error' }];
  for (const code of CODES)
    test(code, () => {
      const error = new ServeError(code, 'why');
      const { status, headers, body } = dialectOf('cog').fail(error, 'id', askWith('POST'));
      assert.deepEqual(headers, { 'Content-Type': 'application/json', ...HEADERS[code] });
      const said = JSON.parse(body.toString()) as { detail?: unknown };
      if (FAILED.test(code))
        assert.deepEqual([status, said], [200, { status: 'failed', error: 'why', output: null }]);
      else if (code === 'SERVE_BAD_BODY') assert.deepEqual([status, said], [422, { detail: listed() }]);
      else if (code === 'SERVE_INPUT_INVALID')
        assert.deepEqual([status, said], [422, { detail: listed('input') }]);
      else assert.deepEqual([status, typeof said.detail], [ERRORS[code].status ?? 500, 'string']);
    });
});

test('open-inference sends a stack and wrong values as text, because the protocol has one field', () => {
  const { fail } = dialectOf('open-inference');
  const textOf = (error: ServeError, exposeErrors = false): unknown =>
    JSON.parse(fail(error, 'id', askWith('POST', exposeErrors)).body.toString());
  const thrown = new ServeError('SERVE_INFERENCE_FAILED', 'why', { detail: 'Error: stack' });
  assert.deepEqual(textOf(thrown), { error: 'why' });
  assert.deepEqual(textOf(thrown, true), { error: 'why\nError: stack' });
  const issues = [{ path: ['rows', 0], message: 'too small' }];
  const refused = new ServeError('SERVE_HTTP_ERROR', 'Wrong.', { status: 422, issues });
  assert.deepEqual(textOf(refused), { error: 'Wrong. rows.0: too small' });
});

test("Banana's clients get a status of the app that they would hide as 500, with it in the error", () => {
  const seen = (code: ErrorCode, status: number, context: RequestContext): unknown[] => {
    const failure = dialectOf('banana').fail(new ServeError(code, 'why', { status }), 'id', context);
    const { error } = JSON.parse(failure.body.toString()) as { error: { status?: number } };
    return [failure.status, error.status];
  };
  const client = askWith('POST', false, { 'x-banana-request-id': '1' });
  for (const status of [400, 403, 409, 418, 422, 423, 429, 502, 504])
    assert.deepEqual(seen('SERVE_HTTP_ERROR', status, client), [500, status]);
  for (const status of [401, 404, 413, 500, 503])
    assert.deepEqual(seen('SERVE_HTTP_ERROR', status, client), [status, undefined]);
  assert.deepEqual(seen('SERVE_INPUT_INVALID', 0, client), [500, 422]);
  assert.deepEqual(seen('SERVE_BAD_BODY', 0, client), [400, undefined]);
  assert.deepEqual(seen('SERVE_HTTP_ERROR', 422, askWith('POST')), [422, undefined]);
});

test("an app's stack is sent only with --expose-errors", () => {
  const error = new ServeError('SERVE_INFERENCE_FAILED', 'why', { detail: 'Error: stack' });
  assert.equal(dialectOf('banana').fail(error, 'id', askWith('POST', true)).body.toString(), 'Error: stack');
  assertHouse(dialectOf('banana').fail(error, 'id', askWith('POST')), 'SERVE_INFERENCE_FAILED');
});

test('an error with a status that the app chose has that status in the house dialect', () => {
  const error = new ServeError('SERVE_INFERENCE_FAILED', 'why', { status: 513 });
  assert.equal(dialectOf('banana').fail(error, 'id', askWith('POST')).status, 513);
});

test('a failed prediction is 500 in the house dialect, whatever its status on MMS', () => {
  const error = new ServeError('SERVE_INFERENCE_FAILED', 'why', { status: 513, kind: 'prediction' });
  assertHouse(dialectOf('banana').fail(error, 'id', askWith('POST')), 'SERVE_INFERENCE_FAILED');
});

test('Retry-After is on the errors that may be retried', () => {
  const error = new ServeError('SERVE_QUEUE_FULL', 'why', { retryAfterS: 7 });
  assert.equal(dialectOf('banana').fail(error, 'id', askWith('POST')).headers['Retry-After'], 7);
});
