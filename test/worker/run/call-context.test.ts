import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Channel } from '../../../protocol/wire/channel.js';
import type { Call, Message } from '../../../protocol/wire/messages.js';
import type { WorkerInfo } from '../../../worker/api/types.js';
import { CallContext } from '../../../worker/run/call-context.js';
import { NO_METRICS, callWith } from '../calls.js';

const WORKER: WorkerInfo = { index: 2, gpu: '0', threads: 4 };

function contextOf(fields: Partial<Call> = {}): { ctx: CallContext; sent: Message[] } {
  const sent: Message[] = [];
  const channel = { send: (message: Message) => sent.push(message), flush: () => {} } as unknown as Channel;
  return {
    ctx: new CallContext(callWith(fields), [], { worker: WORKER, metrics: NO_METRICS, channel }),
    sent,
  };
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
  const { ctx } = contextOf({ requestId: 'r' });
  assert.equal(ctx.log, ctx.log);
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

const JOB = { id: 'j', attempt: 2 };
const ofProgress = (fraction: number, text: string): object => ({ type: 'progress', id: 1, fraction, text });

test('the app sees a job; a call whose client waits has none, and its progress goes nowhere', () => {
  assert.deepEqual(contextOf({ job: JOB }).ctx.job, JOB);
  const { ctx, sent } = contextOf();
  ctx.progress(0.5);
  assert.deepEqual([ctx.job, sent], [null, []]);
});

test('progress: the first leaves at once, then the newest four times a second, the last with the end, none after it', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let nowMs = 1000;
  t.mock.method(performance, 'now', () => nowMs);
  const pass = (ms: number): void => {
    nowMs += ms;
    t.mock.timers.tick(ms);
  };
  const { ctx, sent } = contextOf({ id: 1, job: JOB });
  for (const fraction of [0.1, 0.2, 0.3]) ctx.progress(fraction, `at ${fraction}`);
  assert.deepEqual(sent, [ofProgress(0.1, 'at 0.1')]);
  pass(249);
  assert.equal(sent.length, 1);
  pass(1);
  assert.deepEqual(sent[1], ofProgress(0.3, 'at 0.3'));
  ctx.progress(0.4, '🍌'.repeat(101));
  pass(250);
  assert.deepEqual(sent[2], ofProgress(0.4, '🍌'.repeat(100)));
  ctx.progress(0.5, 'last');
  ctx.end();
  ctx.progress(0.6);
  ctx.end();
  pass(1000);
  assert.deepEqual(sent.slice(3), [ofProgress(0.5, 'last')]);
});

test('progress takes a fraction and a text', () => {
  const { ctx } = contextOf();
  for (const wrong of [-0.1, 1.1, NaN]) assert.throws(() => ctx.progress(wrong), RangeError);
  for (const wrong of [['half'], [0.5, 5]] as unknown as [number][])
    assert.throws(() => ctx.progress(...wrong), TypeError);
});
