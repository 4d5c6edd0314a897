import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  DATA_OVERHEAD_BYTES,
  MAX_FRAGMENT_BYTES,
  STREAM_WINDOW_BYTES,
} from '../../../../protocol/wire/limits.js';
import { FRAGMENT_OVERHEAD_BYTES } from '../../../../supervisor/http/websocket/frame-reads.js';
import { Outbox } from '../../../../supervisor/http/websocket/outbox.js';

function setUp(roomBytes = Infinity) {
  let counted = 0;
  const outbox = new Outbox((bytes) => {
    if (bytes > 0 && counted + bytes > roomBytes) throw new RangeError('no room');
    counted += bytes;
  });
  const sent: string[] = [];
  const drain = (): void =>
    outbox.drain(({ text, last }, bytes) =>
      sent.push(`${text ? 'text' : 'bytes'} ${bytes.length}${last ? '' : ' and more'}`),
    );
  return { outbox, sent, drain, counted: () => counted };
}

test('messages wait for credit, and are sent in parts, in order', () => {
  const { outbox, sent, drain, counted } = setUp();
  outbox.push(Buffer.alloc(MAX_FRAGMENT_BYTES + 1), false);
  outbox.push(Buffer.alloc(0), true);
  drain();
  assert.deepEqual(sent, []);
  assert.equal(counted(), MAX_FRAGMENT_BYTES + 1 + 2 * DATA_OVERHEAD_BYTES);
  outbox.grant(1);
  drain();
  assert.deepEqual(sent, [`bytes ${MAX_FRAGMENT_BYTES} and more`]);
  outbox.grant(MAX_FRAGMENT_BYTES + DATA_OVERHEAD_BYTES);
  drain();
  assert.deepEqual(sent.slice(1), ['bytes 1']);
  outbox.grant(1 + DATA_OVERHEAD_BYTES);
  drain();
  assert.deepEqual(sent.slice(2), ['text 0']);
  assert.deepEqual([outbox.isEmpty, counted()], [true, 0]);
});

test('the outbox is full once its messages fill a window', () => {
  const { outbox } = setUp();
  outbox.push(Buffer.alloc(STREAM_WINDOW_BYTES - DATA_OVERHEAD_BYTES - 1), false);
  assert.equal(outbox.isFull, false);
  outbox.push(Buffer.alloc(0), false);
  assert.equal(outbox.isFull, true);
});

/** Memory of a read besides its bytes. */
const READ_BYTES = 256;

test('bytes count as soon as they are read, and those of pings are subtracted again', () => {
  const { outbox, counted } = setUp();
  outbox.onBytes(106, 0);
  assert.deepEqual([counted(), outbox.partialBytes], [106 + READ_BYTES, 106]);
  outbox.onControlFrame(100);
  assert.deepEqual([counted(), outbox.partialBytes], [0, 0]);
  outbox.onControlFrame(100);
  assert.equal(counted(), 0);
});

test('continuous pings do not count, wherever reads split them', () => {
  const { outbox, counted } = setUp();
  for (let at = 0, cutBytes = 0; at < 1000; at += 1) {
    outbox.onBytes(65_536, 0);
    let bytes = cutBytes + 65_536;
    for (; bytes >= 131; bytes -= 131) outbox.onControlFrame(125);
    cutBytes = bytes;
    assert.equal(counted(), cutBytes);
  }
});

test('parts of a message count with the reads that they keep alive, and the pings between them', () => {
  const { outbox, counted } = setUp();
  for (let part = 0; part < 1000; part += 1) {
    outbox.onBytes(7 + 131, 0);
    outbox.onControlFrame(125);
  }
  assert.ok(counted() > 950 * (7 + 131 + READ_BYTES), `${counted()} bytes`);
  outbox.push(Buffer.alloc(1000), false);
  outbox.grant(10_000);
  outbox.drain(() => {});
  assert.equal(counted(), 0);
});

test('a small message does not keep alive the rest of its read', () => {
  const { outbox } = setUp();
  const read = Buffer.alloc(65_536, 'r');
  outbox.push(read.subarray(0, 5), true);
  outbox.grant(1);
  const held: [string, number][] = [];
  outbox.drain((_part, bytes) => held.push([bytes.toString(), bytes.buffer.byteLength]));
  assert.deepEqual(held, [['rrrrr', 5]]);
});

test('an outbox without room throws, and clearing it frees everything but an incomplete message', () => {
  const { outbox, counted } = setUp(400);
  outbox.onBytes(60, 0);
  assert.throws(() => outbox.onBytes(60, 0), /no room/);
  outbox.clear();
  assert.equal(counted(), 60 + READ_BYTES);
  outbox.onGone();
  assert.equal(counted(), 0);
});

test('fragments of an incomplete message count with the memory that each takes, until it is complete', () => {
  const { outbox, counted } = setUp();
  outbox.onBytes(700, 100);
  assert.equal(counted(), 700 + READ_BYTES + 100 * FRAGMENT_OVERHEAD_BYTES);
  outbox.onBytes(7, 0);
  outbox.push(Buffer.alloc(101), false);
  outbox.grant(1000);
  outbox.drain(() => {});
  assert.equal(counted(), 0);
});

test('fragments without room throw, and what was counted of them is freed with the connection', () => {
  const { outbox, counted } = setUp(400);
  assert.throws(() => outbox.onBytes(60, 100), /no room/);
  outbox.clear();
  assert.equal(counted(), 0);
  outbox.onGone();
  assert.equal(counted(), 0);
});
