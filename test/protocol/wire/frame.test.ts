import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { joinPieces } from '../../../protocol/wire/body-assembler.js';
import { ServeError } from '../../../protocol/errors.js';
import { FRAME_PREFIX_BYTES, FrameReader } from '../../../protocol/wire/frame.js';
import { MAX_FRAGMENT_BYTES, MAX_HEAD_BYTES } from '../../../protocol/wire/limits.js';
import { GOLDEN } from '../golden-frames.js';

interface Frame {
  readonly head: string;
  readonly body: string;
}

function prefix(headLength: number, bodyLength: number): Buffer {
  const bytes = Buffer.alloc(FRAME_PREFIX_BYTES);
  bytes.writeUInt32LE(headLength, 0);
  bytes.writeUInt32LE(bodyLength, 4);
  return bytes;
}

function frame(head: Uint8Array, body: Uint8Array): Buffer {
  return Buffer.concat([prefix(head.length, body.length), head, body]);
}

/** Feeds the stream cut at the given places; every chunk is memory of its own. */
function readCut(stream: Buffer, cuts: readonly number[]): Frame[] {
  const frames: Frame[] = [];
  const reader = new FrameReader((source, start, end, pieces) => {
    frames.push({ head: source.toString('hex', start, end), body: joinPieces(pieces).toString('hex') });
  });
  let start = 0;
  for (const end of [...cuts, stream.length]) {
    reader.push(Buffer.from(stream.subarray(start, end)));
    start = end;
  }
  assert.ok(reader.atBoundary);
  return frames;
}

const GOLDEN_STREAM = Buffer.concat(GOLDEN.map((golden) => golden.frame));
const GOLDEN_FRAMES: readonly Frame[] = GOLDEN.map((golden) => ({
  head: golden.frame.subarray(FRAME_PREFIX_BYTES, golden.frame.length - golden.body.length).toString('hex'),
  body: golden.body.toString('hex'),
}));

test('FrameReader reads the golden frames when all arrive in one chunk', () => {
  assert.deepEqual(readCut(GOLDEN_STREAM, []), GOLDEN_FRAMES);
});

test('FrameReader reads the golden frames byte by byte', () => {
  const everywhere = Array.from({ length: GOLDEN_STREAM.length - 1 }, (_, i) => i + 1);
  assert.deepEqual(readCut(GOLDEN_STREAM, everywhere), GOLDEN_FRAMES);
});

test('FrameReader reads the golden frames wherever one cut falls', () => {
  for (let cut = 0; cut <= GOLDEN_STREAM.length; cut += 1) {
    assert.deepEqual(readCut(GOLDEN_STREAM, [cut]), GOLDEN_FRAMES, `cut at ${cut}`);
  }
});

test('FrameReader reads two frames wherever two cuts fall, empty chunks included', () => {
  const [first, second] = [
    frame(Buffer.from('ab'), Buffer.from('cde')),
    frame(Buffer.from('f'), Buffer.alloc(0)),
  ];
  const stream = Buffer.concat([first, second]);
  const expected = readCut(stream, []);
  assert.equal(expected.length, 2);
  for (let one = 0; one <= stream.length; one += 1) {
    for (let two = one; two <= stream.length; two += 1) {
      assert.deepEqual(readCut(stream, [one, two]), expected, `cuts at ${one} and ${two}`);
    }
  }
});

test('FrameReader reads any frames under any cuts', () => {
  const anyFrame = fc.tuple(
    fc.uint8Array({ minLength: 1, maxLength: 60 }),
    fc.uint8Array({ maxLength: 300 }),
  );
  const anyCuts = fc.array(fc.nat(), { maxLength: 40 });
  fc.assert(
    fc.property(fc.array(anyFrame, { minLength: 1, maxLength: 8 }), anyCuts, (pairs, randoms) => {
      const stream = Buffer.concat(pairs.map(([head, body]) => frame(head, body)));
      const cuts = randoms.map((random) => random % (stream.length + 1)).sort((a, b) => a - b);
      const expected = pairs.map(([head, body]) => ({
        head: Buffer.from(head).toString('hex'),
        body: Buffer.from(body).toString('hex'),
      }));
      assert.deepEqual(readCut(stream, cuts), expected);
    }),
  );
});

test('FrameReader accepts the largest head and body, and hands the body over without a copy', () => {
  const chunk = frame(Buffer.alloc(MAX_HEAD_BYTES, 1), Buffer.alloc(MAX_FRAGMENT_BYTES, 2));
  const seen: { head: Buffer; pieces: Buffer[] }[] = [];
  new FrameReader((source, start, end, pieces) => {
    seen.push({ head: source.subarray(start, end), pieces });
  }).push(chunk);
  assert.equal(seen.length, 1);
  assert.equal(seen[0]?.head.length, MAX_HEAD_BYTES);
  assert.equal(seen[0]?.pieces.length, 1);
  assert.equal(seen[0]?.pieces[0]?.length, MAX_FRAGMENT_BYTES);
  assert.equal(seen[0]?.pieces[0]?.buffer, chunk.buffer);
});

for (const [what, headLength, bodyLength, detail] of [
  ['an empty head', 0, 0, `frame head of 0 bytes; 1 to ${MAX_HEAD_BYTES} are allowed`],
  [
    'a head one byte too long',
    MAX_HEAD_BYTES + 1,
    0,
    `frame head of ${MAX_HEAD_BYTES + 1} bytes; 1 to ${MAX_HEAD_BYTES} are allowed`,
  ],
  [
    'a head of 4 GiB',
    0xffff_ffff,
    0,
    `frame head of ${0xffff_ffff} bytes; 1 to ${MAX_HEAD_BYTES} are allowed`,
  ],
  [
    'a body one byte too long',
    5,
    MAX_FRAGMENT_BYTES + 1,
    `frame body of ${MAX_FRAGMENT_BYTES + 1} bytes; at most ${MAX_FRAGMENT_BYTES} are allowed`,
  ],
  [
    'a body of 4 GiB',
    5,
    0xffff_ffff,
    `frame body of ${0xffff_ffff} bytes; at most ${MAX_FRAGMENT_BYTES} are allowed`,
  ],
] as const) {
  test(`FrameReader refuses ${what} as soon as its eight length bytes have come`, () => {
    const bytes = prefix(headLength, bodyLength);
    const reader = new FrameReader(() => assert.fail('nothing was complete'));
    reader.push(bytes.subarray(0, FRAME_PREFIX_BYTES - 1));
    assert.throws(
      () => reader.push(bytes.subarray(FRAME_PREFIX_BYTES - 1)),
      (error) => error instanceof ServeError && error.code === 'SERVE_PROTOCOL' && error.detail === detail,
    );
  });
}

test('FrameReader allocates nothing for bytes that were announced but have not come', () => {
  const announced = prefix(MAX_HEAD_BYTES, MAX_FRAGMENT_BYTES);
  const before = process.memoryUsage().arrayBuffers;
  const readers = Array.from({ length: 500 }, () => new FrameReader(() => {}));
  for (const reader of readers) reader.push(announced);
  const grownBytes = process.memoryUsage().arrayBuffers - before;
  assert.ok(readers.every((reader) => !reader.atBoundary));
  assert.ok(grownBytes < 16 * 1024 * 1024, `${grownBytes} bytes for 625 MiB announced`);
});

test('FrameReader.atBoundary is false from the first byte of a frame to its last', () => {
  const bytes = frame(Buffer.from('hd'), Buffer.from('body'));
  const reader = new FrameReader(() => {});
  assert.equal(reader.atBoundary, true);
  for (let i = 0; i < bytes.length; i += 1) {
    reader.push(bytes.subarray(i, i + 1));
    assert.equal(reader.atBoundary, i === bytes.length - 1, `after byte ${i}`);
  }
});

test('FrameReader has long bodies read into their rooms, under any cuts', () => {
  const body = fc.oneof(fc.nat(100), fc.integer({ min: 15_000, max: 70_000 }));
  const cut = fc.oneof(fc.nat(30), fc.nat(70_000));
  fc.assert(
    fc.property(fc.array(body, { maxLength: 5 }), fc.array(cut), (sizes, cuts) => {
      const sent = sizes.map((bytes, i) => Buffer.alloc(bytes, i + 1));
      const rooms = new Set<Buffer>();
      const read: Buffer[] = [];
      const reader = new FrameReader(
        (source, start, end, pieces) => {
          assert.equal(source.readUInt32LE(start), read.length);
          assert.equal(end - start, 4);
          for (const room of rooms) assert.ok(pieces.length === 1 && pieces[0] === room);
          rooms.clear();
          read.push(joinPieces(pieces));
        },
        (source, start, _end, bytes) => {
          if (source.readUInt32LE(start) % 3 === 2) return null; // no room for this one
          const room = Buffer.alloc(bytes);
          rooms.add(room);
          return room;
        },
      );
      feed(reader, Buffer.concat(sent.map((bytes, i) => frame(uint32(i), bytes))), [...cuts, 50_000]);
      assert.ok(reader.atBoundary);
      assert.equal(reader.room, null);
      assert.ok(Buffer.concat(read).equals(Buffer.concat(sent)));
      assert.equal(read.length, sent.length);
    }),
    { numRuns: 200 },
  );
});

/** Feeds the stream to the reader in pieces of these sizes, in a cycle, and into its room if it has one. */
function feed(reader: FrameReader, stream: Buffer, sizes: readonly number[]): void {
  let at = 0;
  for (let i = 0; at < stream.length; i += 1) {
    const { room } = reader;
    const bytes = Math.min(1 + (sizes[i % sizes.length] as number), room?.length ?? Infinity);
    const chunk = stream.subarray(at, at + bytes);
    if (room === null) {
      reader.push(Buffer.from(chunk));
    } else {
      chunk.copy(room);
      reader.filled(chunk.length);
    }
    at += chunk.length;
  }
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

test('FrameReader on garbage either refuses it or waits for more, and never calls back a frame over the limits', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 10 }), (chunks) => {
      const reader = new FrameReader((_source, start, end, pieces) => {
        assert.ok(end - start >= 1 && end - start <= MAX_HEAD_BYTES);
        assert.ok(joinPieces(pieces).length <= MAX_FRAGMENT_BYTES);
      });
      try {
        for (const chunk of chunks) reader.push(Buffer.from(chunk));
      } catch (error) {
        assert.ok(error instanceof ServeError && error.code === 'SERVE_PROTOCOL', String(error));
      }
    }),
    { numRuns: 1000 },
  );
});
