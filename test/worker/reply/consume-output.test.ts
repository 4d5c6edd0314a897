import assert from 'node:assert/strict';
import { test } from 'node:test';
import { consumeOutput } from '../../../worker/load/start-app.js';
import { callWith } from '../calls.js';
import { serveError } from '../refusals.js';

function* items(...given: unknown[]): Generator<unknown> {
  yield* given;
}

for (const [what, output] of [
  ['a value', { rows: [new Map()] }],
  ['an item of a stream', items('a', { rows: [new Map()] })],
  ['a Response', Response.error()],
] as const) {
  test(`an example whose output is ${what} that cannot be sent fails as a call would`, async () => {
    await assert.rejects(consumeOutput(output, callWith()), serveError('SERVE_OUTPUT_INVALID', /./));
  });
}

test("every item of an example's stream is taken, however many there are", async () => {
  let taken = 0;
  const output = items(...Array.from({ length: 3 }, () => 'x'.repeat(1_000_000)));
  const counted = { next: () => ((taken += 1), output.next()), [Symbol.iterator]: () => counted };
  await consumeOutput(counted, callWith());
  assert.equal(taken, 4);
});
