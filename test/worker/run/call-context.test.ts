import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Call } from '../../../protocol/wire/messages.js';
import type { AppLog, WorkerInfo } from '../../../worker/api/types.js';
import { CallContext } from '../../../worker/run/call-context.js';
import { NO_METRICS, callWith } from '../calls.js';

const WORKER: WorkerInfo = { index: 2, gpu: '0', threads: 4 };

const LOG: AppLog = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

function contextOf(fields: Partial<Call> = {}): { ctx: CallContext; logsMadeFor: string[] } {
  const logsMadeFor: string[] = [];
  const ctx = new CallContext(callWith(fields), [], { worker: WORKER, metrics: NO_METRICS }, (requestId) => {
    logsMadeFor.push(requestId);
    return LOG;
  });
  return { ctx, logsMadeFor };
}

test('a context has the values of its call', () => {
  const { ctx } = contextOf({
    requestId: 'r',
    path: '/p',
    contentType: 'a/b',
    deadlineMs: 5,
    query: 'a=1&a=2&b=%20',
  });
  assert.deepEqual(
    [ctx.requestId, ctx.path, ctx.contentType, ctx.deadline, ctx.worker],
    ['r', '/p', 'a/b', 5, WORKER],
  );
  assert.deepEqual(
    [...ctx.query],
    [
      ['a', '1'],
      ['a', '2'],
      ['b', ' '],
    ],
  );
});

test('headers have names in lower case, repeated ones joined, and no prototype to stumble over', () => {
  const { ctx } = contextOf({ headers: 'X-A\n1\nHost\nlocalhost\nx-a\n2\n__proto__\nx' });
  assert.deepEqual(
    { ...ctx.headers },
    { ...Object.fromEntries([['__proto__', 'x']]), 'x-a': '1, 2', host: 'localhost' },
  );
  assert.equal(ctx.headers['constructor'], undefined);
});

test('headers, query, log and signal are made when first asked for, and only once', () => {
  const { ctx, logsMadeFor } = contextOf({ requestId: 'r' });
  assert.deepEqual(logsMadeFor, []);
  assert.equal(ctx.log, LOG);
  assert.equal(ctx.log, LOG);
  assert.deepEqual(logsMadeFor, ['r']);
  assert.equal(ctx.headers, ctx.headers);
  assert.equal(ctx.query, ctx.query);
  assert.equal(ctx.signal, ctx.signal);
});

test('abort reaches a signal that was read before', () => {
  const { ctx } = contextOf();
  const reasons: unknown[] = [];
  ctx.signal.addEventListener('abort', () => reasons.push(ctx.signal.reason));
  assert.equal(ctx.aborted, false);
  ctx.abort('the client left');
  assert.equal(ctx.aborted, true);
  assert.equal(reasons.length, 1);
  assert.match(String(reasons[0]), /AbortError: the client left/);
});

test('a signal read after the abort is aborted already, with the reason', () => {
  const { ctx } = contextOf();
  ctx.abort('the deadline passed');
  assert.equal(ctx.signal.aborted, true);
  assert.throws(() => ctx.signal.throwIfAborted(), { name: 'AbortError', message: 'the deadline passed' });
});

test('the first reason to abort stays', () => {
  const { ctx } = contextOf();
  let events = 0;
  ctx.signal.addEventListener('abort', () => (events += 1));
  ctx.abort('first');
  ctx.abort('second');
  assert.equal(events, 1);
  assert.match(String(ctx.signal.reason), /first/);
});

const TRACE = '0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331';

for (const [what, sent, seen] of [
  ['a valid one', `00-${TRACE}-01`, `00-${TRACE}-01`],
  ['one of a later version', `01-${TRACE}-01`, `01-${TRACE}-01`],
  ['one of a later version with more fields', `cc-${TRACE}-01-what-ever`, `cc-${TRACE}-01-what-ever`],
  ['one of version 00 with more fields', `00-${TRACE}-01-more`, null],
  ['one with text after it', `00-${TRACE}-01x`, null],
  ['a later version with text after it', `01-${TRACE}-01x`, null],
  ['version ff', `ff-${TRACE}-01`, null],
  ['a zero trace id', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`, null],
  ['a zero parent id', `00-0af7651916cd43dd8448eb211c80319c-${'0'.repeat(16)}-01`, null],
  ['upper case', `00-${TRACE.toUpperCase()}-01`, null],
  ['a short trace id', '00-0af7651916cd43dd8448eb211c8031-b7ad6b7169203331-01', null],
  ['two in one', `00-${TRACE}-01, 00-${TRACE}-01`, null],
  ['an empty one', '', null],
] as const) {
  test(`traceparent: ${what} is ${seen === null ? 'not passed on' : 'passed on'}`, () => {
    assert.equal(contextOf({ headers: `Traceparent\n${sent}` }).ctx.traceparent, seen);
  });
}

test('traceparent is null without the header', () => {
  assert.equal(contextOf().ctx.traceparent, null);
});
