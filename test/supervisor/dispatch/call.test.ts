import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ServeError } from '../../../protocol/errors.js';
import type { Call } from '../../../supervisor/dispatch/call.js';
import { FakeWorker, OK, newCall } from './calls.js';

const ENDINGS: Readonly<Record<string, (call: Call) => void>> = {
  reply: (call) => call.reply(OK, [], 0, 1),
  end: (call) => call.end(1),
  fail: (call) => call.fail(new ServeError('SERVE_INTERNAL')),
};

test('a call settles exactly once, with the first of its endings, and nothing follows', () => {
  const steps = fc.array(fc.constantFrom('begin', 'head', 'chunk', ...Object.keys(ENDINGS)), {
    maxLength: 12,
  });
  fc.assert(
    fc.property(steps, (names) => {
      const outcomes: string[] = [];
      const call = newCall('1', { onSettled: (outcome) => outcomes.push(outcome) });
      for (const name of names) {
        if (name === 'begin') call.begin(5);
        else if (name === 'head') call.head(OK);
        else if (name === 'chunk') call.chunk([], () => {});
        else ENDINGS[name]?.(call);
      }
      const first = names.find((name) => name in ENDINGS);
      const expected = { reply: ['ok'], end: ['end'], fail: ['SERVE_INTERNAL'] }[first ?? ''] ?? [];
      assert.deepEqual(outcomes, expected);
      assert.equal(call.settled, first !== undefined);
    }),
  );
});

test('a settled call does not begin any more', () => {
  const call = newCall('1');
  call.fail(new ServeError('SERVE_CANCELLED'));
  call.begin(5);
  assert.deepEqual([call.settled, call.checkBegun()], [true, false]);
});

test('checkBegun looks up in its worker whether a call has begun', () => {
  const asks = [
    (call: Call) => assert.equal(call.checkBegun(), true),
    (call: Call) => assert.equal(call.queueMs(500), 80),
    (call: Call) => {
      call.fail(new ServeError('SERVE_CANCELLED'));
      assert.equal(call.queueMs(500), 80, 'its owner is told how long it waited');
    },
  ];
  for (const ask of asks) {
    const call = newCall('1', { acceptedAtMs: 100 });
    call.sendTo(Object.assign(new FakeWorker(), { learnBegun: () => call.begin(180) }));
    ask(call);
  }
});

test('time in line ends when the call begins', () => {
  const call = newCall('1', { acceptedAtMs: 100 });
  assert.equal(call.queueMs(150), 50);
  call.begin(180);
  assert.equal(call.queueMs(500), 80);
});
