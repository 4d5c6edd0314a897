import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { PassThrough, Readable, Writable } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import { BodyAssembler, joinPieces, splitPieces, totalBytes } from '../../../protocol/wire/body-assembler.js';
import { Channel, type ChannelHandlers } from '../../../protocol/wire/channel.js';
import { ServeError } from '../../../protocol/errors.js';
import { lighten } from '../../../protocol/wire/light-socket.js';
import { MAX_FRAGMENT_BYTES } from '../../../protocol/wire/limits.js';
import type { Call, Message } from '../../../protocol/wire/messages.js';
import { GOLDEN } from '../golden-frames.js';
import { Tap, closed, deferred, nextTurn, readFrames, socketPair, type Received } from '../streams.js';

const MIB = 1024 * 1024;

const NOTHING: ChannelHandlers = {
  onMessage: () => assert.fail('no message was sent'),
  onEnd: () => assert.fail('the stream did not end'),
  onWriteError: (error) => assert.fail(error),
};

/** A channel whose writes are seen. */
function tapped(): { channel: Channel; tap: Tap } {
  const tap = new Tap();
  return { channel: new Channel(new PassThrough(), tap, NOTHING), tap };
}

/** A channel that is fed by hand, and its callbacks so far. */
function fed(onMessage: ChannelHandlers['onMessage'] = () => {}): {
  input: PassThrough;
  log: string[];
  channel: Channel;
} {
  const input = new PassThrough();
  const log: string[] = [];
  const channel = new Channel(input, new PassThrough(), {
    onMessage: (message, pieces) => {
      log.push(message.type);
      onMessage(message, pieces);
    },
    onEnd: (error) => log.push(error === null ? 'end' : `${error.code}: ${error.detail}`),
    onWriteError: () => log.push('write error'),
  });
  return { input, log, channel };
}

function call(id: number, bodyBytes: number): Call {
  return {
    id,
    bodyBytes,
    requestId: `r${id}`,
    route: '/',
    path: '/',
    query: '',
    format: 'bytes',
    contentType: '',
    accept: '',
    deadlineMs: null,
    headers: '',
    method: 'POST',
    params: '',
    asciiJson: false,
    answer: 'auto',
    dialectParams: '',
  };
}

function callMessage(id: number, bodyBytes: number): Message {
  return { type: 'call', calls: [call(id, bodyBytes)], inlineBytes: [bodyBytes], batch: id, last: true };
}

function result(id: number, bodyBytes: number): Message {
  return { type: 'result', id, status: 200, contentType: '', headers: '', phrase: '', bodyBytes, runMs: 1 };
}

const cancel = (id: number): Message => ({ type: 'cancel', id, reason: 'the client left' });

/** Bytes that differ by position, so that a swap or a gap shows. */
function pattern(bytes: number, seed: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  for (let i = 0; i + 4 <= bytes; i += 4) buffer.writeUInt32LE((i + seed * 2_654_435_761) >>> 0, i);
  return buffer;
}

test('Channel writes nothing before flush, then a whole burst in one write', () => {
  const { channel, tap } = tapped();
  channel.send(cancel(1));
  channel.send({ type: 'chunk', id: 2 }, Buffer.from('abc'));
  channel.sendBody(result(3, 2), 3, [Buffer.from('x'), Buffer.from('y')], 2);
  assert.equal(tap.writes.length, 0);
  channel.flush();
  assert.deepEqual(tap.typesPerWrite, [['cancel', 'chunk', 'result']]);
  assert.deepEqual(
    tap.received.map(({ body }) => body.toString()),
    ['', 'abc', 'xy'],
  );
});

test('Channel hands a burst over the copy limit to the stream as one gathered write', () => {
  const { channel, tap } = tapped();
  const big = pattern(100 * 1024, 1);
  channel.send({ type: 'chunk', id: 1 }, big);
  channel.send(cancel(2));
  channel.flush();
  assert.deepEqual(tap.typesPerWrite, [['chunk', 'cancel']]);
  assert.ok(tap.received[0]?.body.equals(big));
});

test('Channel.flush without anything to send writes nothing', () => {
  const { channel, tap } = tapped();
  channel.flush();
  assert.equal(tap.writes.length, 0);
  assert.equal(channel.flushed, true);
});

for (const [bytes, frames] of [
  [0, 1],
  [MAX_FRAGMENT_BYTES, 1],
  [MAX_FRAGMENT_BYTES + 1, 2],
  [3 * MAX_FRAGMENT_BYTES, 3],
] as const) {
  test(`a body of ${bytes} bytes leaves in ${frames} frames, none over the limit, and reads back whole`, async () => {
    const { channel, tap } = tapped();
    const body = pattern(bytes, 2);
    channel.sendBody(callMessage(7, bytes), 7, [body], bytes);
    channel.flush();
    await untilFlushed(channel);
    const received = tap.received;
    assert.deepEqual(
      received.map(({ message }) => message.type),
      ['call', ...Array.from({ length: frames - 1 }, () => 'body')],
    );
    const first = received[0]?.message;
    assert.deepEqual(first?.type === 'call' && first.inlineBytes, [Math.min(bytes, MAX_FRAGMENT_BYTES)]);
    assert.ok(assemble(received).get(7)?.equals(body));
  });
}

/** Puts the bodies of calls and results together as the reader of a channel does. */
function assemble(received: readonly Received[]): Map<number, Buffer> {
  const whole = new Map<number, Buffer>();
  const bodies = new BodyAssembler<number>();
  for (const { message, body } of received) {
    const pieces = body.length === 0 ? [] : [body];
    if (message.type === 'call') {
      message.calls.forEach((one, i) => {
        const done = bodies.start(
          one.id,
          one.id,
          one.bodyBytes,
          splitPieces(pieces, message.inlineBytes)[i] as Buffer[],
        );
        if (done !== null) whole.set(one.id, joinPieces(done));
      });
    } else if (message.type === 'result') {
      const done = bodies.start(message.id, message.id, message.bodyBytes, pieces);
      if (done !== null) whole.set(message.id, joinPieces(done));
    } else if (message.type === 'body') {
      const done = bodies.add(message.id, pieces);
      if (done !== null) whole.set(done.owner, joinPieces(done.pieces));
    }
  }
  return whole;
}

function untilFlushed(channel: Channel): Promise<void> {
  return new Promise((resolve) => channel.onceFlushed(resolve));
}

test('a body in pieces of any size reads back whole', async () => {
  const size = fc.oneof(fc.constant(0), fc.nat(1000), fc.integer({ min: 200_000, max: 600_000 }));
  await fc.assert(
    fc.asyncProperty(fc.array(size, { maxLength: 6 }), async (sizes) => {
      const pieces = sizes.map((bytes, i) => pattern(bytes, i));
      const body = Buffer.concat(pieces);
      const { channel, tap } = tapped();
      channel.sendBody(result(1, body.length), 1, pieces, body.length);
      channel.flush();
      await untilFlushed(channel);
      assert.ok(tap.received.every((received) => received.body.length <= MAX_FRAGMENT_BYTES));
      assert.ok(assemble(tap.received).get(1)?.equals(body));
    }),
    { numRuns: 20 },
  );
});

test('a control message overtakes a large body: at most three fragments leave before it', async () => {
  const { channel, tap } = tapped();
  const body = pattern(4 * MIB, 3);
  tap.hold();
  channel.sendBody(callMessage(1, body.length), 1, [body], body.length);
  channel.flush();
  channel.send(cancel(99));
  channel.flush();
  tap.release();
  await untilFlushed(channel);
  const types = tap.received.map(({ message }) => message.type);
  assert.equal(types.length, 16 + 1);
  assert.ok(types.indexOf('cancel') <= 3, types.join(' '));
  assert.ok(assemble(tap.received).get(1)?.equals(body));
});

test('bodies leave one after the other in the order they were sent, a small one behind a large one too', async () => {
  const { channel, tap } = tapped();
  tap.hold();
  const sizes = [MIB, 10, 2 * MIB];
  for (const [i, bytes] of sizes.entries()) {
    channel.sendBody(callMessage(i + 1, bytes), i + 1, [pattern(bytes, i)], bytes);
  }
  channel.flush();
  tap.release();
  await untilFlushed(channel);
  const ids = tap.received.map(({ message }) =>
    message.type === 'call' ? message.calls[0]?.id : (message as { id: number }).id,
  );
  assert.deepEqual(
    ids,
    ids.toSorted((a, b) => (a as number) - (b as number)),
  );
  const whole = assemble(tap.received);
  for (const [i, bytes] of sizes.entries()) assert.ok(whole.get(i + 1)?.equals(pattern(bytes, i)));
});

test('dropBody before the first frame has left returns false, and the peer never learns of the call', async () => {
  const { channel, tap } = tapped();
  tap.hold();
  channel.sendBody(callMessage(1, MIB), 1, [pattern(MIB, 1)], MIB);
  channel.sendBody(callMessage(2, MIB), 2, [pattern(MIB, 2)], MIB);
  channel.flush();
  assert.equal(channel.dropBody(2), false);
  tap.release();
  await untilFlushed(channel);
  assert.deepEqual([...assemble(tap.received).keys()], [1]);
  assert.equal(tap.received.filter(({ message }) => message.type === 'call').length, 1);
});

test('dropBody after the first frame sends no further fragment and leaves the stream usable', async () => {
  const { channel, tap } = tapped();
  tap.hold();
  channel.sendBody(callMessage(1, 8 * MIB), 1, [pattern(8 * MIB, 1)], 8 * MIB);
  channel.flush();
  assert.equal(channel.dropBody(1), true);
  channel.send(cancel(1));
  channel.sendBody(callMessage(2, MIB), 2, [pattern(MIB, 2)], MIB);
  channel.flush();
  tap.release();
  await untilFlushed(channel);
  const types = tap.received.map(({ message }) => message.type);
  assert.deepEqual(types.slice(0, types.indexOf('cancel')), ['call', 'body']);
  const afterCancel = tap.received.slice(types.indexOf('cancel') + 1);
  assert.ok(assemble(afterCancel).get(2)?.equals(pattern(MIB, 2)));
});

test('dropBody of a body that has left, or of an unknown one, returns true', async () => {
  const { channel } = tapped();
  channel.sendBody(callMessage(1, 10), 1, [pattern(10, 1)], 10);
  channel.flush();
  await untilFlushed(channel);
  assert.equal(channel.dropBody(1), true);
  assert.equal(channel.dropBody(77), true);
});

test('flushed is false from send until the stream has taken the bytes, and onceFlushed waits for that', async () => {
  const { channel, tap } = tapped();
  let calls = 0;
  channel.onceFlushed(() => (calls += 1));
  assert.equal(calls, 1, 'at once while nothing is queued');
  tap.hold();
  channel.send(cancel(1));
  assert.equal(channel.flushed, false, 'queued');
  channel.onceFlushed(() => (calls += 1));
  channel.flush();
  assert.equal(channel.flushed, false, 'written, not taken');
  await nextTurn();
  assert.equal(calls, 1);
  tap.release();
  await nextTurn();
  assert.equal(channel.flushed, true);
  assert.equal(calls, 2);
});

test('flushed is false while a body waits for its first flush', () => {
  const { channel } = tapped();
  channel.sendBody(result(1, MIB), 1, [pattern(MIB, 1)], MIB);
  assert.equal(channel.flushed, false);
});

test('flushed and onceFlushed cover body fragments that wait for the stream', async () => {
  const { channel, tap } = tapped();
  tap.hold();
  channel.sendBody(result(1, 2 * MIB), 1, [pattern(2 * MIB, 1)], 2 * MIB);
  channel.flush();
  assert.equal(channel.hasTransfers, true);
  let called = false;
  channel.onceFlushed(() => (called = true));
  for (let taken = 0; taken < 3; taken += 1) {
    tap.step();
    await nextTurn();
    assert.equal(called, false);
    assert.equal(channel.flushed, false);
  }
  tap.release();
  await untilFlushed(channel);
  assert.equal(called, true);
  assert.equal(channel.hasTransfers, false);
  assert.equal(assemble(tap.received).get(1)?.length, 2 * MIB);
});

test('messages that onceFlushed has confirmed reach the peer although the sender ends at once', async (t) => {
  const { a, b } = await socketPair(t);
  const body = pattern(4 * MIB, 5);
  const channel = new Channel(new PassThrough(), a, NOTHING);
  channel.sendBody(result(1, body.length), 1, [body], body.length);
  channel.flush();
  assert.equal(channel.flushed, false, 'a kernel buffer holds no 4 MiB');
  channel.onceFlushed(() => a.destroy());
  const received = await receiveAll(b);
  assert.ok(assemble(received).get(1)?.equals(body));
});

async function receiveAll(input: Readable): Promise<Received[]> {
  const received: Received[] = [];
  const error = await new Promise<ServeError | null>((resolve) => {
    new Channel(input, new PassThrough(), {
      onMessage: (message, pieces) => received.push({ message, body: joinPieces(pieces) }),
      onEnd: resolve,
      onWriteError: resolve as () => void,
    });
  });
  assert.equal(error, null);
  return received;
}

test('a write that failed is never taken for flushed, not even before Node reports the error', async (t) => {
  const { a, b } = await socketPair(t);
  b.destroy();
  await closed(b);
  const failed = deferred<NodeJS.ErrnoException>();
  const channel = new Channel(new PassThrough(), a, { ...NOTHING, onWriteError: failed.resolve });
  let called = false;
  channel.send({ type: 'chunk', id: 1 });
  channel.flush();
  assert.equal(channel.flushed, false);
  channel.onceFlushed(() => (called = true));
  assert.equal((await failed.promise).code, 'EPIPE');
  await nextTurn();
  assert.equal(channel.flushed, false);
  assert.equal(called, false);
});

test('a failed write is reported while earlier messages of the peer still arrive', async () => {
  const input = new PassThrough();
  const out = new Writable({ write: (_chunk, _encoding, done) => done(new Error('EPIPE')) });
  const log: string[] = [];
  const ended = deferred<void>();
  const channel = new Channel(input, out, {
    onMessage: (message) => log.push(message.type),
    onEnd: () => ended.resolve(),
    onWriteError: (error) => log.push(error.message),
  });
  channel.send(cancel(1));
  channel.flush();
  await closed(out);
  input.end(golden('ready', 'result'));
  await ended.promise;
  assert.deepEqual(log, ['EPIPE', 'ready', 'result']);
});

function golden(...names: string[]): Buffer {
  return Buffer.concat(
    names.map((name) => (GOLDEN.find((one) => one.name === name) as { frame: Buffer }).frame),
  );
}

test('Channel reads every golden frame under any split of the stream', async () => {
  const stream = Buffer.concat(GOLDEN.map(({ frame }) => frame));
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(stream.length), { maxLength: 60 }), async (randoms) => {
      const cuts = [0, ...randoms.toSorted((a, b) => a - b), stream.length];
      const chunks = cuts.slice(1).map((end, i) => stream.subarray(cuts[i], end));
      const received = await receiveAll(Readable.from(chunks.filter(({ length }) => length > 0)));
      assert.deepEqual(
        received,
        GOLDEN.map(({ message, body }) => ({ message, body })),
      );
    }),
    { numRuns: 30 },
  );
});

test('a call frame with three calls reads back with each body in its place', async () => {
  const { channel, tap } = tapped();
  const calls = [call(1, 3), call(2, 0), call(3, 4)];
  channel.send({ type: 'call', calls, inlineBytes: [3, 0, 4], batch: 1, last: true }, Buffer.from('abcdefg'));
  channel.flush();
  const [received] = await receiveAll(Readable.from([tap.bytes]));
  assert.deepEqual(received?.message, { type: 'call', calls, inlineBytes: [3, 0, 4], batch: 1, last: true });
  const texts = [...assemble([received])].map(([id, body]) => [id, body.toString()]);
  assert.deepEqual(texts, [
    [1, 'abc'],
    [2, ''],
    [3, 'defg'],
  ]);
});

test('10 MB travel both ways at once', async (t) => {
  const { a, b } = await socketPair(t);
  const bytes = 10 * 1000 * 1000;
  const sent = [pattern(bytes, 1), pattern(bytes, 2)] as const;
  const [ofA, ofB] = await Promise.all([
    exchange(a, callMessage(1, bytes), sent[0]),
    exchange(b, result(2, bytes), sent[1]),
  ]);
  assert.ok(ofA.get(2)?.equals(sent[1]));
  assert.ok(ofB.get(1)?.equals(sent[0]));
});

/** Sends one body and resolves with the bodies that came, once both are through. */
function exchange(socket: Socket, message: Message, body: Buffer): Promise<Map<number, Buffer>> {
  return new Promise((resolve) => {
    const received: Received[] = [];
    let missing = body.length;
    const channel = new Channel(socket, socket, {
      ...NOTHING,
      onEnd: () => {}, // the test is over
      onMessage: (head, pieces) => {
        received.push({ message: head, body: joinPieces(pieces) });
        missing -= joinPieces(pieces).length;
        if (missing === 0) channel.onceFlushed(() => resolve(assemble(received)));
      },
    });
    const id = message.type === 'call' ? 1 : 2;
    channel.sendBody(message, id, [body], body.length);
    channel.flush();
  });
}

test('fragments are read into the memory of their bodies, whatever comes between them', async (t) => {
  const { a, b } = await socketPair(t);
  const light = lighten(b);
  t.after(() => light.destroy());
  const bodies = new BodyAssembler<number>();
  const read: string[] = [];
  let inPlace = 0;
  const whole = new Promise<Buffer>((resolve) => {
    new Channel(light, new PassThrough(), {
      ...NOTHING,
      onEnd: () => {}, // the test is over
      room: (message, bytes) => (message.type === 'body' ? bodies.room(message.id, bytes) : null),
      onMessage: (message, pieces) => {
        if (message.type === 'result') bodies.start(message.id, message.id, message.bodyBytes, pieces);
        if (message.type === 'cancel') read.push(message.reason);
        if (message.type !== 'body') return;
        const room = bodies.room(message.id, totalBytes(pieces));
        if (pieces[0]?.buffer === room?.buffer && pieces[0]?.byteOffset === room?.byteOffset) inPlace += 1;
        const done = bodies.add(message.id, pieces);
        if (done !== null) resolve(joinPieces(done.pieces));
      },
    });
  });
  const body = pattern(3_000_000, 1);
  const sender = new Channel(new PassThrough(), a, NOTHING);
  sender.sendBody(result(1, body.length), 1, [body], body.length);
  while (sender.hasTransfers) {
    sender.send({ type: 'cancel', id: 2, reason: 'between' });
    sender.flush();
    await nextTurn();
  }
  assert.ok((await whole).equals(body));
  assert.ok(read.length > 0 && read.every((reason) => reason === 'between'));
  assert.ok(inPlace > 0);
});

test('Channel ends once and cleanly when the stream ends between frames', async () => {
  const { input, log } = fed();
  input.end(golden('ready'));
  await closed(input);
  assert.deepEqual(log, ['ready', 'end']);
});

for (const cut of [1, 7, 8, 9, 20]) {
  test(`Channel reports an error when the stream ends ${cut} bytes into a frame`, async () => {
    const { input, log } = fed();
    input.end(golden('one call').subarray(0, cut));
    await closed(input);
    assert.deepEqual(log, ['SERVE_PROTOCOL: the stream ended inside a frame']);
  });
}

test('Channel ends without an error of the peer when reading fails', async () => {
  const { input, log } = fed();
  input.destroy(new Error('ECONNRESET'));
  await closed(input);
  assert.deepEqual(log, ['end']);
});

for (const [what, garbage, detail] of [
  ['text in place of a frame', Buffer.from('Loading checkpoint shards: 100%\n'), /frame head of \d+ bytes/],
  ['a body over the limit', Buffer.from('0500000001000400', 'hex'), /frame body of 262145 bytes/],
  ['a head that is no message', Buffer.from('0100000000000000c0', 'hex'), /malformed message/],
  [
    'an unknown message',
    Buffer.from('070000000000000091a57368727567', 'hex'),
    /unknown message type "shrug"/,
  ],
] as const) {
  test(`Channel ends once with SERVE_PROTOCOL on ${what}, delivers the messages before it, and reads nothing after it`, async () => {
    const { input, log } = fed();
    input.write(Buffer.concat([golden('ready'), garbage]));
    input.end(golden('result', 'end of a stream'));
    await closed(input);
    assert.equal(log.length, 2, log.join('; '));
    assert.equal(log[0], 'ready');
    assert.match(log[1] as string, detail);
    assert.match(log[1] as string, /^SERVE_PROTOCOL: /);
  });
}

test('Channel survives any garbage: it ends exactly once, with SERVE_PROTOCOL or cleanly', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.uint8Array({ minLength: 1, maxLength: 50 }), { maxLength: 5 }),
      async (chunks) => {
        const { input, log } = fed();
        for (const chunk of chunks) input.write(Buffer.from(chunk));
        input.end();
        await closed(input);
        const endings = log.filter((entry) => entry === 'end' || entry.startsWith('SERVE_PROTOCOL'));
        assert.equal(endings.length, 1, log.join('; '));
      },
    ),
    { numRuns: 200 },
  );
});

test("a message that its handler refuses ends the channel with the handler's reason", async () => {
  const { input, log } = fed(() => {
    throw new ServeError('SERVE_PROTOCOL', undefined, { detail: 'not now' });
  });
  input.end(golden('ready', 'ready'));
  await closed(input);
  assert.deepEqual(log, ['ready', 'SERVE_PROTOCOL: not now']);
});

test('after the end nothing more is written', async () => {
  const input = new PassThrough();
  const tap = new Tap();
  const ended = deferred<void>();
  const channel = new Channel(input, tap, { ...NOTHING, onEnd: () => ended.resolve() });
  channel.sendBody(callMessage(1, MIB), 1, [pattern(MIB, 1)], MIB);
  input.end();
  await ended.promise;
  channel.send(cancel(1));
  channel.flush();
  assert.equal(tap.writes.length, 0);
});

test('close sends queued messages, then ends the stream', async () => {
  const { channel, tap } = tapped();
  channel.send(cancel(1));
  channel.close();
  await once(tap, 'finish');
  assert.deepEqual(tap.typesPerWrite, [['cancel']]);
});

for (const [what, accepts, later] of [
  ['all', Infinity, false],
  ['a part', 10, true],
  ['nothing', 0, true],
] as const) {
  test(`a direct write of which the kernel takes ${what} sends every byte once, in order`, () => {
    const tap = new Tap();
    const below: Buffer[] = [];
    const channel = new Channel(new PassThrough(), tap, NOTHING, (bytes) => {
      const taken = Math.min(bytes.length, accepts);
      below.push(Buffer.from(bytes.subarray(0, taken)));
      return taken;
    });
    channel.send(cancel(1));
    channel.flush();
    assert.equal(tap.writes.length > 0, later);
    const received = readFrames(Buffer.concat([...below, tap.bytes]));
    assert.deepEqual(
      received.map(({ message }) => message),
      [cancel(1)],
    );
  });
}

test('nothing goes below the stream while something waits in it', () => {
  const tap = new Tap();
  tap.hold();
  let below = 0;
  const channel = new Channel(new PassThrough(), tap, NOTHING, () => {
    below += 1;
    return 0;
  });
  channel.send(cancel(1));
  channel.flush();
  channel.send(cancel(2));
  channel.flush();
  assert.equal(below, 1);
  tap.release();
  assert.deepEqual(
    tap.received.map(({ message }) => message),
    [cancel(1), cancel(2)],
  );
});
