import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Call } from '../../../supervisor/dispatch/call.js';
import { CallQueue } from '../../../supervisor/dispatch/queue.js';
import { newCall } from './calls.js';

/** The model of the queue: a plain array. */
class Model {
  calls: Call[] = [];
  made = 0;

  next(bytes: number): Call {
    this.made += 1;
    return newCall(`call-${this.made}`, { bytes });
  }
}

type Command = fc.Command<Model, CallQueue<Call>>;

function check(model: Model, queue: CallQueue<Call>): void {
  assert.deepEqual([...queue].map(idOf), model.calls.map(idOf));
  assert.equal(queue.length, model.calls.length);
  assert.equal(
    queue.bytes,
    model.calls.reduce((sum, call) => sum + call.bodyBytes, 0),
  );
  assert.equal(queue.peek(), model.calls[0] ?? null);
}

function idOf(call: Call): string {
  return call.message.requestId;
}

function command(
  name: string,
  run: (model: Model, queue: CallQueue<Call>) => void,
  needsCalls = false,
): Command {
  return {
    check: (model) => !needsCalls || model.calls.length > 0,
    run: (model, queue) => {
      run(model, queue);
      check(model, queue);
    },
    toString: () => name,
  };
}

const commands = [
  fc.nat(1000).map((bytes) =>
    command(`push(${bytes})`, (model, queue) => {
      const call = model.next(bytes);
      model.calls.push(call);
      queue.push(call);
    }),
  ),
  fc.nat(1000).map((bytes) =>
    command(`unshift(${bytes})`, (model, queue) => {
      const call = model.next(bytes);
      model.calls.unshift(call);
      queue.unshift(call);
    }),
  ),
  fc.constant(
    command('shift', (model, queue) => {
      assert.equal(queue.shift(), model.calls.shift() ?? null);
    }),
  ),
  fc.nat(100).map((at) =>
    command(
      `remove(${at})`,
      (model, queue) => {
        const [call] = model.calls.splice(at % model.calls.length, 1);
        queue.remove(call as Call);
      },
      true,
    ),
  ),
  fc.nat(6).map((step) =>
    command(`remove every ${step + 1}th while walking`, (model, queue) => {
      let i = 0;
      const removed = new Set<Call>();
      for (const call of queue) {
        if (i % (step + 1) === 0) {
          queue.remove(call);
          removed.add(call);
        }
        i += 1;
      }
      assert.equal(i, model.calls.length, 'each was visited once');
      model.calls = model.calls.filter((call) => !removed.has(call));
    }),
  ),
];

test('CallQueue behaves as an array would, whatever is pushed, put back, taken and removed', () => {
  fc.assert(
    fc.property(fc.commands(commands, { maxCommands: 60 }), (program) => {
      fc.modelRun(() => ({ model: new Model(), real: new CallQueue<Call>() }), program);
    }),
    { numRuns: 300 },
  );
});

test('a call that was removed can be put back', () => {
  const queue = new CallQueue<Call>();
  const [first, second] = [newCall('1'), newCall('2')];
  queue.push(first);
  queue.push(second);
  const taken = queue.shift() as Call;
  queue.unshift(taken);
  assert.deepEqual([...queue].map(idOf), ['1', '2']);
});
