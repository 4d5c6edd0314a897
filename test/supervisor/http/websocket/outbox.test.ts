import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  DATA_OVERHEAD_BYTES,
  MAX_FRAGMENT_BYTES,
  STREAM_WINDOW_BYTES,
} from '../../../../protocol/messages.js';
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

test('messages wait for credit, and leave in parts, in their order', () => {
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

test('the outbox is full once it holds a window of messages', () => {
  const { outbox } = setUp();
  outbox.push(Buffer.alloc(STREAM_WINDOW_BYTES - DATA_OVERHEAD_BYTES - 1), false);
  assert.equal(outbox.isFull, false);
  outbox.push(Buffer.alloc(0), false);
  assert.equal(outbox.isFull, true);
});

test('bytes count as soon as they are read, and those of pings are taken out again', () => {
  const { outbox, counted } = setUp();
  outbox.onBytes(106);
  assert.deepEqual([counted(), outbox.partialBytes], [106, 106]);
  outbox.onControlFrame(100);
  assert.deepEqual([counted(), outbox.partialBytes], [0, 0]);
  outbox.onControlFrame(100);
  assert.equal(counted(), 0);
});

test('an outbox without room says so, and gives back what it holds but for a message under way', () => {
  const { outbox, counted } = setUp(100);
  outbox.onBytes(60);
  assert.throws(() => outbox.onBytes(60), /no room/);
  outbox.clear();
  assert.equal(counted(), 60);
  outbox.onGone();
  assert.equal(counted(), 0);
});
