import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { ServeError } from '../../../../protocol/errors.js';
import type { Call } from '../../../../supervisor/dispatch/call.js';
import { AccessLog } from '../../../../supervisor/http/answer/access-log.js';
import type { RequestContext } from '../../../../supervisor/http/request/request-context.js';
import type { Log } from '../../../../supervisor/observe/log.js';
import { LINES_PER_S } from '../../../../supervisor/observe/line-limit.js';

interface Line {
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** An access log that keeps its lines, and mocked time. */
function setUp(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const lines: Line[] = [];
  const log = { info: (fields: object, msg: string) => lines.push({ ...fields, msg }) } as unknown as Log;
  return { access: new AccessLog(log, () => ''), lines, endSecond: () => t.mock.timers.tick(1000) };
}

function requestOf(fields: Partial<RequestContext>, path = '/'): RequestContext {
  const request = {
    method: 'POST',
    url: `${path}?key=secret`,
    headers: {},
    socket: { remoteAddress: '::ffff:10.0.0.7' },
  };
  return {
    request: request,
    client: '10.0.0.7',
    requestId: 'r',
    headerNames: { callIds: [], ids: [], keys: [], exposed: [] },
    counts: true,
    hasKey: false,
    isProbe: false,
    isLogged: false,
    dialect: { name: 'banana' },
    model: null,
    path,
    acceptedAtMs: performance.now(),
    ...fields,
  } as unknown as RequestContext;
}

function callOf(hasBegun: boolean): Call {
  const message = { path: '/', requestId: 'r' };
  return {
    message,
    hasBegun,
    queueMs: () => 1,
    runMs: 2,
    acceptedAtMs: performance.now(),
  } as unknown as Call;
}

const UNAUTHORIZED = new ServeError('SERVE_UNAUTHORIZED');

test('each line of a call has its method, path, status and client, refusals too', (t) => {
  const { access, lines } = setUp(t);
  const asked = requestOf({});
  access.settled(asked, callOf(true), 200, null);
  access.refused(asked, UNAUTHORIZED, 401);
  access.settled(asked, callOf(true), 200, new ServeError('SERVE_CANCELLED'));
  access.cut(asked.request, 'r', new ServeError('SERVE_SLOW_READER'));
  assert.deepEqual(
    lines.map(({ method, path, client, status, code, msg }) => [method, path, client, status, code, msg]),
    [
      ['POST', '/', '10.0.0.7', 200, undefined, 'POST /'],
      ['POST', '/', '10.0.0.7', 401, 'SERVE_UNAUTHORIZED', 'POST / refused'],
      ['POST', '/', '10.0.0.7', null, 'SERVE_CANCELLED', 'POST /'],
      ['POST', '/', '10.0.0.7', null, 'SERVE_SLOW_READER', 'POST / cut off'],
    ],
  );
});

test('answers to clients without a key have so many lines a second; those with one, and calls that ran, have theirs', (t) => {
  const { access, lines, endSecond } = setUp(t);
  const none = requestOf({});
  for (let i = 0; i < 5000; i += 1) access.refused(none, UNAUTHORIZED, 401);
  access.settled(none, callOf(false), 503, new ServeError('SERVE_QUEUE_TIMEOUT'));
  assert.equal(lines.length, LINES_PER_S);
  access.settled(none, callOf(true), 200, null);
  access.refused(requestOf({ hasKey: true }), new ServeError('SERVE_NOT_FOUND'), 404);
  assert.equal(lines.length, LINES_PER_S + 2);
  endSecond();
  const rest = 5001 - LINES_PER_S;
  assert.deepEqual(lines.slice(LINES_PER_S + 2), [
    { answers: rest, msg: `${rest} more answers to clients without a key` },
  ]);
});

test('a probe has a line when its answer changes', (t) => {
  const { access, lines } = setUp(t);
  const probe = requestOf({ isProbe: true, counts: false }, '/readyz');
  for (const status of [503, 503, 200, 200, 503]) access.answered(probe, status, null);
  access.answered(requestOf({ counts: false }, '/status'), 200, null);
  assert.deepEqual(
    lines.map(({ path, status }) => [path, status]),
    [
      ['/readyz', 200],
      ['/readyz', 503],
    ],
  );
});

test('a path without end is cut in the field and in the text', (t) => {
  const { access, lines } = setUp(t);
  access.refused(requestOf({}, `/${'x'.repeat(15_000)}`), new ServeError('SERVE_UNAUTHORIZED'), 401);
  const path = `/${'x'.repeat(1023)}\u2026 (15001 characters)`;
  assert.deepEqual([lines[0]?.['path'], lines[0]?.msg], [path, `POST ${path} refused`]);
});
