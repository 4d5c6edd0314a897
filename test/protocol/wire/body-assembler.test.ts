import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { BodyAssembler, joinPieces, splitPieces, totalBytes } from '../../../protocol/wire/body-assembler.js';
import { ServeError } from '../../../protocol/errors.js';

const bytes = (text: string): Buffer[] => (text === '' ? [] : [Buffer.from(text)]);

function breaks(run: () => unknown, detail: RegExp): void {
  assert.throws(run, (error) => {
    assert.ok(error instanceof ServeError && error.code === 'SERVE_PROTOCOL', String(error));
    assert.match(error.detail, detail);
    return true;
  });
}

test('BodyAssembler gives back a body that came whole, an empty one included', () => {
  const bodies = new BodyAssembler<string>();
  const pieces = bytes('abc');
  assert.equal(bodies.start(1, 'owner', 3, pieces), pieces);
  assert.deepEqual(bodies.start(2, 'owner', 0, []), []);
  breaks(() => bodies.add(1, bytes('x')), /unknown call 1/);
});

test('BodyAssembler keeps several bodies apart while their fragments arrive in turn', () => {
  const bodies = new BodyAssembler<string>();
  assert.equal(bodies.start(1, 'one', 6, bytes('ab')), null);
  assert.equal(bodies.start(2, 'two', 4, []), null);
  assert.equal(bodies.add(2, bytes('wx')), null);
  assert.equal(bodies.add(1, bytes('cd')), null);
  const two = bodies.add(2, bytes('yz'));
  assert.deepEqual([two?.owner, joinPieces(two?.pieces ?? []).toString()], ['two', 'wxyz']);
  const one = bodies.add(1, bytes('ef'));
  assert.deepEqual([one?.owner, joinPieces(one?.pieces ?? []).toString()], ['one', 'abcdef']);
});

test('BodyAssembler copies a body of several frames, as they come, to memory it is given', () => {
  const given: Buffer[] = [];
  const bodies = new BodyAssembler<null>((size) => {
    const buffer = Buffer.alloc(size);
    given.push(buffer);
    return { buffer, release() {} };
  });
  const first = Buffer.from('ab');
  bodies.start(1, null, 5, [first]);
  first.fill('x');
  const whole = bodies.add(1, [Buffer.from('c'), Buffer.from('de')]);
  assert.deepEqual(whole?.pieces, given);
  assert.equal(given[0]?.toString(), 'abcde');
});

test('BodyAssembler returns room for the next fragment, and does not copy bytes that are in it already', () => {
  const bodies = new BodyAssembler<null>();
  bodies.start(1, null, 6, bytes('ab'));
  const room = bodies.room(1, 3) as Buffer;
  room.write('cde');
  assert.equal(bodies.add(1, [room]), null);
  const [whole] = bodies.add(1, bytes('f'))?.pieces ?? [];
  assert.equal(whole?.toString(), 'abcdef');
  assert.equal(whole?.buffer, room.buffer);
});

test('BodyAssembler returns room for the first fragment of a body, in the memory that the body gets', () => {
  let allocated = 0;
  let released = 0;
  const bodies = new BodyAssembler<null>((size) => {
    allocated += 1;
    return { buffer: Buffer.alloc(size), release: () => (released += 1) };
  });
  assert.equal(bodies.firstRoom(3, 3), null, 'it comes in one frame');
  const room = bodies.firstRoom(5, 3) as Buffer;
  room.write('abc');
  assert.equal(bodies.start(1, null, 5, [room]), null);
  const whole = bodies.add(1, bytes('de'));
  assert.deepEqual([whole?.pieces[0]?.toString(), whole?.pieces[0]?.buffer === room.buffer], ['abcde', true]);
  whole?.release();
  assert.deepEqual([allocated, released], [1, 1]);
});

test('BodyAssembler has no room for an unknown call, nor for more bytes than are missing', () => {
  const bodies = new BodyAssembler<null>();
  bodies.start(1, null, 4, bytes('ab'));
  assert.equal(bodies.room(2, 1), null);
  assert.equal(bodies.room(1, 3), null);
});

test('BodyAssembler refuses more bytes than a body announced', () => {
  const bodies = new BodyAssembler<null>();
  breaks(() => bodies.start(1, null, 2, bytes('abc')), /body of call 1 is longer than announced/);
  bodies.start(2, null, 4, bytes('ab'));
  breaks(() => bodies.add(2, bytes('cde')), /a fragment of 3 bytes where 2 are missing/);
});

test('BodyAssembler refuses an empty fragment, which would never bring a body nearer to its end', () => {
  const bodies = new BodyAssembler<null>();
  bodies.start(1, null, 2, []);
  breaks(() => bodies.add(1, []), /a fragment of 0 bytes where 2 are missing/);
});

test('BodyAssembler refuses fragments of calls it does not know, finished and dropped ones included', () => {
  const bodies = new BodyAssembler<null>();
  breaks(() => bodies.add(9, bytes('x')), /unknown call 9/);
  bodies.start(1, null, 1, []);
  bodies.add(1, bytes('x'));
  breaks(() => bodies.add(1, bytes('x')), /unknown call 1/);
  bodies.start(2, null, 5, []);
  bodies.drop(2);
  breaks(() => bodies.add(2, bytes('x')), /unknown call 2/);
});

test('BodyAssembler refuses a second body for a call whose first is unfinished', () => {
  const bodies = new BodyAssembler<null>();
  bodies.start(1, null, 5, []);
  breaks(() => bodies.start(1, null, 5, []), /a second body for call 1/);
});

test('BodyAssembler.drop gives back the owner of an unfinished body once, and null for any other', () => {
  const bodies = new BodyAssembler<string>();
  bodies.start(1, 'owner', 5, []);
  assert.equal(bodies.drop(1), 'owner');
  assert.equal(bodies.drop(1), null);
  bodies.start(2, 'whole', 1, bytes('x'));
  assert.equal(bodies.drop(2), null);
  assert.equal(bodies.start(1, 'again', 1, []), null, 'the id is free again');
});

test('splitPieces gives each call its own bytes wherever the chunks were cut', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 20 }), { minLength: 1, maxLength: 6 }),
      fc.array(fc.nat(), { maxLength: 6 }),
      (calls, randoms) => {
        const joined = Buffer.concat(calls);
        const cuts = [0, ...randoms.map((random) => random % (joined.length + 1)), joined.length].sort(
          (a, b) => a - b,
        );
        const pieces = cuts.slice(1).map((end, i) => joined.subarray(cuts[i], end));
        const parts = splitPieces(
          pieces,
          calls.map(({ length }) => length),
        );
        assert.deepEqual(
          parts.map((part) => joinPieces(part).toString('hex')),
          calls.map((call) => Buffer.from(call).toString('hex')),
        );
      },
    ),
  );
});

for (const [what, sizes] of [
  ['one call that announces more', [6]],
  ['one call that announces less', [4]],
  ['calls that announce more', [3, 3]],
  ['calls that announce less', [2, 2]],
] as const) {
  test(`splitPieces refuses a frame with ${what} than came with it`, () => {
    breaks(() => splitPieces(bytes('abcde'), sizes), /a frame with 5 body bytes where its calls announce/);
  });
}

test('totalBytes and joinPieces agree, and a single piece is not copied', () => {
  const piece = Buffer.from('abc');
  assert.equal(joinPieces([piece]), piece);
  assert.equal(totalBytes([piece, Buffer.from('de')]), 5);
  assert.equal(joinPieces([piece, Buffer.from('de')]).toString(), 'abcde');
  assert.equal(joinPieces([]).length, totalBytes([]));
});
