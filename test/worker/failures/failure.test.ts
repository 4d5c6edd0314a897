import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../../../protocol/errors.js';
import { HttpError } from '../../../worker/api/http-error.js';
import { PredictionException } from '../../../worker/api/http-error.js';
import { failureOf } from '../../../worker/failures/failure.js';

const hostile = new Proxy(new Error('x'), {
  get: () => assert.fail('the getter must not run'),
  getPrototypeOf: () => assert.fail('the getter must not run'),
});

function thrownBy(run: () => unknown): unknown {
  try {
    return run();
  } catch (thrown) {
    return thrown;
  }
}

function unsayable(): PredictionException {
  return Object.defineProperty(new PredictionException('no cat'), 'errorCode', {
    get: () => assert.fail('no'),
  });
}

for (const [what, thrown, expected] of [
  ['an error', new Error('secret'), ['exception', 0, 'The model failed on this call.']],
  ['no error at all', undefined, ['exception', 0, 'The model failed on this call.']],
  ['a Proxy that refuses everything', hostile, ['exception', 0, 'The model failed on this call.']],
  ['a PredictionException', new PredictionException('no cat', 513), ['prediction', 513, 'no cat']],
  ['one that cannot say its status', unsayable(), ['exception', 0, 'The model failed on this call.']],
  ['one without a status', new PredictionException('no cat'), ['prediction', 500, 'no cat']],
  ['one with a status of no error', new PredictionException('no cat', 200), ['prediction', 500, 'no cat']],
  [
    'what a client says of memory',
    new RangeError('Array buffer allocation failed'),
    ['exception', 0, 'The model failed on this call.'],
  ],
  [
    'a buffer that could not be had',
    thrownBy(() => new ArrayBuffer(Number.MAX_SAFE_INTEGER)),
    ['out-of-memory', 0, 'The model failed on this call.'],
  ],
  [
    'an error because of one',
    new Error('resize', { cause: Object.assign(new Error('x'), { code: 'ERR_MEMORY_ALLOCATION_FAILED' }) }),
    ['out-of-memory', 0, 'The model failed on this call.'],
  ],
] as const) {
  test(`an app that throws ${what} fails its call as that`, () => {
    const { code, kind, status, message } = failureOf(thrown);
    assert.deepEqual([kind, status, message], expected);
    assert.equal(code, 'SERVE_INFERENCE_FAILED');
  });
}

test('an HttpError fails its call with its own status and message, and without one with that of the code', () => {
  const told = (thrown: unknown): unknown[] => {
    const { code, kind, status, message, detail } = failureOf(thrown);
    return [code, kind, status, message, /^HttpError: .*\n +at /.test(detail)];
  };
  assert.deepEqual(told(new HttpError(409, 'taken')), ['SERVE_HTTP_ERROR', '', 409, 'taken', true]);
  assert.deepEqual(told(new HttpError(503, 'later', { cause: 1 })).slice(2, 4), [503, 'later']);
  assert.equal(failureOf(new HttpError(404, '')).message, 'The app refused this call.');
});

test('an HttpError takes statuses of errors alone; one that is changed later counts as any other error', () => {
  for (const status of [200, 399, 600, 404.5, Number.NaN, '409']) {
    assert.throws(() => new HttpError(status as number, 'x'), /is not a status from 400 to 599/);
  }
  assert.throws(() => new HttpError(409, { a: 1 } as unknown as string), {
    name: 'TypeError',
    message: /message is not text; .*return new Response\(\{ status, json \}\)/,
  });
  assert.equal(failureOf(new HttpError(404)).message, 'The app refused this call.');
  const changed = Object.assign(new HttpError(409, 'x'), { status: 200 });
  assert.equal(failureOf(changed).code, 'SERVE_INFERENCE_FAILED');
});

test('the log gets the frames of the app, without those of the server and of Node', () => {
  const own = new URL('../../../worker/run/run-calls.js', import.meta.url).href;
  const thrown = Object.assign(new Error('secret'), {
    stack: `Error: secret\n    at inference (/app/app.ts:3:9)\n    at run (${own}:9:1)\n    at node:internal/x:1:1`,
  });
  assert.equal(failureOf(thrown).detail, 'Error: secret\n    at inference (/app/app.ts:3:9)');
});

test('an error of the server itself stays as it is', () => {
  const error = new ServeError('SERVE_OUTPUT_INVALID');
  assert.equal(failureOf(error), error);
});

test('the log gets the stack, which the client never sees', () => {
  const { message, detail } = failureOf(new Error('secret'));
  assert.ok(!message.includes('secret'));
  assert.match(detail, /^Error: secret\n +at /);
});
