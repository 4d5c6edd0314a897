import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { joinPieces } from '../../../protocol/wire/body-assembler.js';
import { ArrivingCalls } from '../../../worker/run/arriving-calls.js';
import { callWith } from '../calls.js';

/** The delivered batches, as lists of `id:body`. */
function collected(): { arriving: ArrivingCalls; batches: string[][] } {
  const batches: string[][] = [];
  const arriving = new ArrivingCalls((batch) => {
    batches.push(batch.map(({ call, pieces }) => `${call.id}:${String(joinPieces(pieces))}`));
  });
  return { arriving, batches };
}

/** A frame with one call, of whose body this much is there. */
function frame(
  arriving: ArrivingCalls,
  id: number,
  batch: number,
  last: boolean,
  bytes: number,
  part: string,
): void {
  const calls = [callWith({ id, bodyBytes: bytes })];
  arriving.takeFrame({ type: 'call', calls, inlineBytes: [part.length], batch, last }, [Buffer.from(part)]);
}

test('a frame for a batch that is closed and still waits for a body breaks the protocol', () => {
  const { arriving } = collected();
  frame(arriving, 1, 1, true, 2, 'a');
  assert.throws(() => frame(arriving, 2, 1, true, 1, 'b'), { code: 'SERVE_PROTOCOL' });
});

test('whatever is cut and cancelled, a batch comes over once, with the others whole and in order', () => {
  const call = fc.record({ inline: fc.nat(3), cancelled: fc.boolean(), late: fc.boolean() });
  fc.assert(
    fc.property(fc.array(call, { minLength: 1, maxLength: 8 }), fc.boolean(), (given, endsEmpty) => {
      const { arriving, batches } = collected();
      const cancel = (late: boolean): void =>
        given.forEach((one, i) => {
          if (one.cancelled && one.late === late) assert.equal(arriving.drop(i), true);
        });
      given.forEach(({ inline }, i) =>
        frame(arriving, i, 7, !endsEmpty && i === given.length - 1, 4, 'abc'.slice(0, inline)),
      );
      cancel(false);
      if (endsEmpty)
        arriving.takeFrame({ type: 'call', calls: [], inlineBytes: [], batch: 7, last: true }, []);
      cancel(true);
      given.forEach(({ inline, cancelled }, i) => {
        if (!cancelled) arriving.takeBody(i, [Buffer.from('abcd'.slice(inline))]);
      });
      const kept = given.flatMap(({ cancelled }, i) => (cancelled ? [] : [`${i}:abcd`]));
      assert.deepEqual(batches, kept.length === 0 ? [] : [kept]);
    }),
  );
});
