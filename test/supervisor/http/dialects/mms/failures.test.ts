/**
 * The form of each error on the paths of Multi Model Server: a table over all codes, and the errors whose kind or
 * status changes it.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ERRORS, ServeError, type ErrorCode, type ErrorKind } from '../../../../../protocol/errors.js';
import type { RequestContext } from '../../../../../supervisor/http/request/request-context.js';
import { mmsStyle } from '../../../../../supervisor/http/dialects/mms/answer-style.js';
import { holdsSection, printTable } from '../../../../helpers/doc-page.js';

const NO_WORKER = 'No worker is available to serve request for model: m.';
const WRONG_KEY =
  'Token Authorization failed. Token either incorrect, expired, or not provided correctly. Send it as Authorization: Bearer {key}.';

/** Status, type, and the message if it differs from the house's. */
const TABLE: Readonly<Record<ErrorCode, readonly [status: number, type: string, message?: string]>> = {
  SERVE_BAD_REQUEST: [400, 'BadRequestException', 'Invalid HTTP message.'],
  SERVE_BAD_BODY: [400, 'BadRequestException'],
  SERVE_UNAUTHORIZED: [401, 'InvalidKeyException', WRONG_KEY],
  SERVE_ORIGIN_REFUSED: [403, 'ForbiddenException'],
  SERVE_NOT_FOUND: [
    404,
    'ResourceNotFoundException',
    'Requested resource is not found, please refer to API document.',
  ],
  SERVE_MODEL_NOT_FOUND: [404, 'ModelNotFoundException'],
  SERVE_VERSION_NOT_FOUND: [404, 'ModelVersionNotFoundException'],
  SERVE_METHOD_NOT_ALLOWED: [
    405,
    'MethodNotAllowedException',
    'Requested method is not allowed, please refer to API document.',
  ],
  SERVE_REQUEST_TIMEOUT: [408, 'RequestTimeoutException'],
  SERVE_MODEL_CONFLICT: [409, 'ConflictStatusException'],
  SERVE_ARCHIVE_INVALID: [400, 'InvalidModelException'],
  SERVE_DOWNLOAD_FAILED: [400, 'DownloadModelException'],
  SERVE_BODY_TOO_LARGE: [413, 'RequestEntityTooLargeException'],
  SERVE_UNSUPPORTED_CODING: [415, 'UnsupportedMediaTypeException'],
  SERVE_UPGRADE_REQUIRED: [426, 'UpgradeRequiredException'],
  SERVE_HEADERS_TOO_LARGE: [400, 'BadRequestException', 'Invalid HTTP message.'],
  SERVE_QUEUE_FULL: [503, 'QueueFullException', `${NO_WORKER} Consider increasing job queue size.`],
  SERVE_OVERLOADED: [503, 'ServiceUnavailableException'],
  SERVE_NOT_READY: [503, 'ServiceUnavailableException', `${NO_WORKER} No worker of this model can start.`],
  SERVE_SHUTTING_DOWN: [503, 'ServiceUnavailableException'],
  SERVE_NOT_BEGUN: [503, 'ServiceUnavailableException'],
  SERVE_NOT_KEPT: [503, 'ServiceUnavailableException'],
  SERVE_JOBS_UNAVAILABLE: [503, 'ServiceUnavailableException'],
  SERVE_KEY_CONFLICT: [422, 'ConflictStatusException'],
  SERVE_FORBIDDEN: [403, 'ForbiddenException'],
  SERVE_JOB_EXPIRED: [504, 'RequestTimeoutException'],
  SERVE_JOB_CANCELLED: [409, 'ConflictStatusException'],
  SERVE_JOB_ENDED: [409, 'ConflictStatusException'],
  SERVE_RESULT_DROPPED: [410, 'ResourceNotFoundException'],
  SERVE_QUEUE_TIMEOUT: [504, 'RequestTimeoutException'],
  SERVE_DEADLINE: [504, 'RequestTimeoutException'],
  SERVE_INFERENCE_FAILED: [503, 'InternalServerException', 'Prediction failed'],
  SERVE_HTTP_ERROR: [500, 'InternalServerException'],
  SERVE_INPUT_INVALID: [400, 'BadRequestException'],
  SERVE_OUTPUT_INVALID: [503, 'InternalServerException', 'Unsupported model output data type.'],
  SERVE_OUTPUT_TOO_LARGE: [500, 'InternalServerException'],
  SERVE_INFERENCE_TIMEOUT: [504, 'InternalServerException'],
  SERVE_WORKER_LOST: [500, 'InternalServerException', 'Worker died.'],
  SERVE_SLOW_READER: [500, 'InternalServerException'],
  SERVE_CANCELLED: [500, 'InternalServerException'],
  SERVE_PROTOCOL: [500, 'InternalServerException'],
  SERVE_INTERNAL: [500, 'InternalServerException'],
  SERVE_APP_INVALID: [500, 'InternalServerException'],
  SERVE_INIT_FAILED: [500, 'InternalServerException'],
  SERVE_INIT_TIMEOUT: [500, 'InternalServerException'],
  SERVE_CRASH_LOOP: [500, 'InternalServerException'],
  SERVE_CONFIG: [400, 'BadRequestException'],
};

const ASK = {
  request: { headers: { 'content-length': '5' } },
  backend: { options: { maxBody: 4 } },
  model: { spec: { name: 'm', program: {} } },
} as unknown as RequestContext;

function sent(code: ErrorCode, message?: string, options?: Partial<ServeError>): unknown[] {
  const { status, body } = mmsStyle.fail(new ServeError(code, message, options), 'id', ASK);
  const sent = JSON.parse(body.toString()) as { code: number; type: string; message: string };
  assert.equal(sent.code, status);
  return [status, sent.type, sent.message];
}

describe('on the paths of Multi Model Server a code is sent as', () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    const [status, type, message = ERRORS[code].message] = TABLE[code];
    test(`${code}: ${status} ${type} ${message}`, () => {
      assert.deepEqual(sent(code), [status, type, message]);
    });
  }
});

/** Codes whose own message is never sent: it is in the log. */
const ALWAYS: readonly ErrorCode[] = [
  'SERVE_UNAUTHORIZED',
  'SERVE_METHOD_NOT_ALLOWED',
  'SERVE_HEADERS_TOO_LARGE',
  'SERVE_INFERENCE_FAILED',
  'SERVE_WORKER_LOST',
];

test("a reply has the error's own message, unless it is not for clients", () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    const [, , message = ''] = sent(code, 'own words');
    const shows = String(message).includes('own words') || code === 'SERVE_QUEUE_FULL';
    assert.equal(shows, !ALWAYS.includes(code), code);
  }
});

const INTERNAL = 'InternalServerException';
for (const [what, given, expected] of [
  ['a prediction that failed', { kind: 'prediction' }, [500, INTERNAL, 'why']],
  [
    'a prediction that failed with a code of its own',
    { kind: 'prediction', status: 513 },
    [513, INTERNAL, 'why'],
  ],
  ['an exception', { kind: 'exception' }, [503, INTERNAL, 'Prediction failed']],
  ['no memory', { kind: 'out-of-memory' }, [507, INTERNAL, 'Out of resources']],
  ['an input that the app refuses', { kind: 'input' }, [400, 'BadRequestException', 'why']],
] as const)
  test(`${what} is ${expected.join(' ')}`, () => {
    assert.deepEqual(sent('SERVE_INFERENCE_FAILED', 'why', given), expected);
  });

test('a worker that died because memory ran out is 507', () => {
  assert.deepEqual(sent('SERVE_WORKER_LOST', 'why', { kind: 'out-of-memory' }), [
    507,
    INTERNAL,
    'Worker died.',
  ]);
});

test('an exception and its message are sent if the operator allows it', () => {
  const options = { maxBody: 4, mmsExceptionStatus: '500', exposeErrors: true };
  const context = { ...ASK, backend: { options } } as unknown as RequestContext;
  const detail = 'Error: secret';
  for (const [code, kind, expected] of [
    ['SERVE_INFERENCE_FAILED', 'exception', [500, 'Prediction failed: Error: secret']],
    ['SERVE_INFERENCE_FAILED', '', [500, 'Prediction failed: Error: secret']],
    ['SERVE_INFERENCE_FAILED', 'out-of-memory', [507, 'Out of resources']],
    ['SERVE_OUTPUT_INVALID', '', [500, 'Unsupported model output data type.']],
    ['SERVE_QUEUE_TIMEOUT', '', [504, ERRORS.SERVE_QUEUE_TIMEOUT.message]],
    ['SERVE_SHUTTING_DOWN', '', [503, ERRORS.SERVE_SHUTTING_DOWN.message]],
  ] as const) {
    const { status, body } = mmsStyle.fail(new ServeError(code, undefined, { detail, kind }), 'id', context);
    assert.deepEqual([status, (JSON.parse(body.toString()) as { message: string }).message], expected);
  }
});

test('unregistering the default version while there are others is 403', () => {
  assert.deepEqual(sent('SERVE_MODEL_CONFLICT', 'why', { status: 403 }), [
    403,
    'InvalidModelVersionException',
    'why',
  ]);
});

test('an error is pretty JSON with one line feed at its end, never cached, and ends its connection', () => {
  const error = new ServeError('SERVE_QUEUE_TIMEOUT', 'late', { retryAfterS: 3 });
  const failure = mmsStyle.fail(error, 'id', null);
  assert.equal(
    failure.body.toString(),
    '{\n  "code": 504,\n  "type": "RequestTimeoutException",\n  "message": "late"\n}\n',
  );
  assert.deepEqual(failure.headers, {
    Pragma: 'no-cache',
    'Cache-Control': 'no-cache; no-store, must-revalidate, private',
    Expires: 'Thu, 01 Jan 1970 00:00:00 UTC',
    'Content-Type': 'application/json',
    'Retry-After': 3,
  });
  assert.equal(failure.closes, true);
});

test('a too large body is read up to twice the limit, and its connection is kept', () => {
  const { closes, readsOnBytes } = mmsStyle.fail(new ServeError('SERVE_BODY_TOO_LARGE'), 'id', ASK);
  assert.deepEqual([closes, readsOnBytes], [undefined, 8]);
  const chunked = { ...ASK, request: { headers: {} } } as unknown as RequestContext;
  assert.equal(mmsStyle.fail(new ServeError('SERVE_BODY_TOO_LARGE'), 'id', chunked).readsOnBytes, 4);
});

const CLIENT_CODES = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => ERRORS[code].status !== null);

/** The kinds of error whose form differs from that of their code. */
const SPECIAL: readonly (readonly [string, ServeError])[] = [
  ['`SERVE_INFERENCE_FAILED` of a prediction', failed('SERVE_INFERENCE_FAILED', 'prediction')],
  ['`SERVE_INFERENCE_FAILED` for lack of memory', failed('SERVE_INFERENCE_FAILED', 'out-of-memory')],
  ['`SERVE_WORKER_LOST` for lack of memory', failed('SERVE_WORKER_LOST', 'out-of-memory')],
];

function failed(code: ErrorCode, kind: ErrorKind): ServeError {
  return new ServeError(code, undefined, { kind });
}

function described(error: ServeError): { code: number; type: string; message: string } {
  const options = { mmsExceptionStatus: '503' };
  const context = {
    model: { spec: { name: '…', program: {} } },
    backend: { options },
    request: { headers: {} },
  };
  const { body } = mmsStyle.fail(error, 'id', context as unknown as RequestContext);
  return JSON.parse(body.toString()) as ReturnType<typeof described>;
}

/** The codes of each type and message; a status is named where it is not the code's own. */
holdsSection('errors.md', 'multi-model-server', () => {
  const rows = new Map<string, { type: string; message: string; codes: string[] }>();
  const named = CLIENT_CODES.map((code) => [`\`${code}\``, new ServeError(code)] as const);
  for (const [name, error] of [...named, ...SPECIAL]) {
    const { code, type, message } = described(error);
    const isOwn = error.message === message && error.kind !== 'out-of-memory';
    const row = { type: `\`${type}\``, message: isOwn ? '' : message, codes: [] as string[] };
    const { codes } = rows.get(row.type + row.message) ?? row;
    codes.push(code === ERRORS[error.code].status ? name : `${name} (${code})`);
    rows.set(row.type + row.message, { ...row, codes });
  }
  return printTable(
    ['type', 'message', 'codes'],
    [...rows.values()].map(({ type, message, codes }) => [type, message, codes.join(', ')]),
  );
});
