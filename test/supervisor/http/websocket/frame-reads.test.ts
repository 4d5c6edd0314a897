import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FrameReads } from '../../../../supervisor/http/websocket/frame-reads.js';

const TEXT = 1;
const CONTINUATION = 0;
const CLOSE = 8;
const PING = 9;

/** A frame of a client, whose mask is all zeros. */
function frame(opcode: number, payload: Buffer, isLast = true): Buffer {
  const { length } = payload;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = (isLast ? 0x80 : 0) | opcode;
  head[1] = 0x80 | (length < 126 ? length : length < 65_536 ? 126 : 127);
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, Buffer.alloc(4), payload]);
}

function readsOf(sent: Buffer, readBytes: number): Buffer[] {
  const count = Math.ceil(sent.length / readBytes);
  return Array.from({ length: count }, (_, i) => sent.subarray(i * readBytes, (i + 1) * readBytes));
}

function passedOf(reads: FrameReads, sent: readonly Buffer[]): Buffer[] {
  return sent.map((read) => reads.take(read)).filter((bytes) => bytes !== null);
}

for (const readBytes of [1, 2, 7, 1000, 65_536]) {
  test(`everything passes unchanged, in order, in reads of ${readBytes} bytes`, () => {
    const payloads = [0, 1, 125, 126, 65_535, 65_536, 70_000].map((length) => Buffer.alloc(length, 'p'));
    const sent = Buffer.concat([
      ...payloads.map((payload) => frame(TEXT, payload)),
      frame(PING, payloads[2] as Buffer),
    ]);
    const passed = passedOf(new FrameReads(), readsOf(sent, readBytes));
    assert.ok(Buffer.concat(passed).equals(sent));
  });
}

test('a frame in reads of one byte reaches the parser in 256th parts', () => {
  const sent = frame(TEXT, Buffer.alloc(100_000, 'p'));
  const passed = passedOf(new FrameReads(), readsOf(sent, 1));
  assert.ok(Buffer.concat(passed).equals(sent));
  assert.ok(passed.length < 100_000 / 256 + 20, `${passed.length} parts`);
});

test('a frame passes at once when it is complete, and its head before that', () => {
  const reads = new FrameReads();
  const sent = frame(TEXT, Buffer.from('hello'));
  assert.equal(reads.take(sent.subarray(0, 6))?.length, 6);
  assert.equal(reads.take(sent.subarray(6, 8)), null);
  assert.equal(reads.take(sent.subarray(8))?.toString(), 'hello');
});

test('collected bytes can be read before their frame is complete', () => {
  const reads = new FrameReads();
  const sent = frame(TEXT, Buffer.from('hello'));
  reads.take(sent.subarray(0, 6));
  reads.take(sent.subarray(6, 8));
  assert.equal(reads.rest()?.toString(), 'he');
  assert.equal(reads.rest(), null);
});

test('fragments are counted until their message is complete; pings between them and empty ones are not', () => {
  const reads = new FrameReads();
  const part = frame(CONTINUATION, Buffer.from('p'), false);
  reads.take(Buffer.concat([frame(TEXT, Buffer.from('p'), false), part, frame(PING, Buffer.alloc(0)), part]));
  assert.equal(reads.fragments, 3);
  reads.take(frame(CONTINUATION, Buffer.alloc(0), false));
  assert.equal(reads.fragments, 3);
  reads.take(frame(CONTINUATION, Buffer.from('p')));
  assert.equal(reads.fragments, 0);
  reads.take(frame(TEXT, Buffer.from('whole')));
  assert.equal(reads.fragments, 0);
});

test('nothing passes after a close frame, which may come in parts, nor after a stop', () => {
  const reads = new FrameReads();
  const close = frame(CLOSE, Buffer.from([3, 232]));
  assert.ok(Buffer.concat(passedOf(reads, readsOf(close, 1))).equals(close));
  assert.equal(reads.take(frame(TEXT, Buffer.from('late'))), null);
  const stopped = new FrameReads();
  stopped.stop();
  assert.equal(stopped.take(frame(TEXT, Buffer.from('late'))), null);
});
