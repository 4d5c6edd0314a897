import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Call } from '../../../supervisor/dispatch/call.js';
import { Lines } from '../../../supervisor/dispatch/lines.js';
import { newCall } from './calls.js';

/** The model of a line: a plain array. */
class Model {
  calls: Call[] = [];
  made = 0;

  next(bytes: number): Call {
    this.made += 1;
    return newCall(`call-${this.made}`, { bytes });
  }
}

type Command = fc.Command<Model, Lines<Call>>;

function check(model: Model, lines: Lines<Call>): void {
  assert.deepEqual([...lines].map(idOf), model.calls.map(idOf));
  assert.equal(lines.length, model.calls.length);
  assert.equal(
    lines.bytes,
    model.calls.reduce((sum, call) => sum + call.bodyBytes, 0),
  );
  assert.equal(lines.all[0]?.first ?? null, model.calls[0] ?? null);
  assert.equal(lines.all[0]?.last ?? null, model.calls.at(-1) ?? null);
}

function idOf(call: Call): string {
  return call.message.requestId;
}

function command(name: string, run: (model: Model, lines: Lines<Call>) => void, needsCalls = false): Command {
  return {
    check: (model) => !needsCalls || model.calls.length > 0,
    run: (model, lines) => {
      run(model, lines);
      check(model, lines);
    },
    toString: () => name,
  };
}

const commands = [
  fc.nat(1000).map((bytes) =>
    command(`push(${bytes})`, (model, lines) => {
      const call = model.next(bytes);
      model.calls.push(call);
      lines.push(call, 0);
    }),
  ),
  fc.nat(1000).map((bytes) =>
    command(`putBack(${bytes})`, (model, lines) => {
      const call = model.next(bytes);
      model.calls.unshift(call);
      lines.putBack(call);
    }),
  ),
  fc.nat(100).map((at) =>
    command(
      `remove(${at})`,
      (model, lines) => {
        const [call] = model.calls.splice(at % model.calls.length, 1);
        lines.remove(call as Call);
      },
      true,
    ),
  ),
  fc.nat(6).map((step) =>
    command(`remove every ${step + 1}th while walking`, (model, lines) => {
      let i = 0;
      const removed = new Set<Call>();
      for (const call of lines) {
        if (i % (step + 1) === 0) {
          lines.remove(call);
          removed.add(call);
        }
        i += 1;
      }
      assert.equal(i, model.calls.length, 'each was visited once');
      model.calls = model.calls.filter((call) => !removed.has(call));
    }),
  ),
];

test('a line behaves as an array would, whatever is pushed, put back and removed', () => {
  const none = { bytes: 0 };
  fc.assert(
    fc.property(fc.commands(commands, { maxCommands: 60 }), (program) => {
      fc.modelRun(() => ({ model: new Model(), real: new Lines<Call>(none) }), program);
    }),
    { numRuns: 300 },
  );
});
