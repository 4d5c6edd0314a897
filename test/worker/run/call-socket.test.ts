import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { Channel } from '../../../protocol/wire/channel.js';
import { DATA_OVERHEAD_BYTES } from '../../../protocol/wire/limits.js';
import { CallSocket } from '../../../worker/run/call-socket.js';
import { Tap, nextTurn } from '../../protocol/streams.js';

const ID = 7;

/** A socket over a real channel; the front records what it writes. */
class Bench {
  readonly tap = new Tap();
  readonly socket: CallSocket;

  constructor(windowBytes = 1000) {
    const refuse = (): never => assert.fail('the front did nothing');
    const channel = new Channel(new PassThrough(), this.tap, {
      onMessage: refuse,
      onEnd: refuse,
      onWriteError: refuse,
    });
    this.socket = new CallSocket(channel, ID, windowBytes);
  }

  hear(text: string, { isText = true, isLast = true } = {}): void {
    const bytes = Buffer.from(text);
    this.socket.onData([bytes], isText, isLast);
  }

  /** Such as `credit 1000`, `data last 5`. */
  get story(): string[] {
    return this.tap.received.map(({ message, body }) => {
      if (message.type === 'data') return `data ${message.last ? 'last' : 'part'} ${body.length}`;
      if (message.type === 'credit') return `credit ${message.bytes}`;
      if (message.type === 'waiting') return `waiting ${message.received}`;
      return message.type === 'close' ? `close ${message.code} ${message.reason}` : message.type;
    });
  }
}

async function settle(): Promise<void> {
  for (let i = 0; i < 5; i += 1) await nextTurn();
}

test('the client may send one window at once, and then as many bytes as the app has taken', async () => {
  const bench = new Bench();
  bench.hear('abc');
  bench.hear('');
  assert.deepEqual(bench.story, ['credit 1000'], 'no credit for messages that were not received');
  assert.equal(await bench.socket.receive(), 'abc');
  assert.equal(await bench.socket.receive(), '');
  assert.deepEqual(bench.story, [
    'credit 1000',
    `credit ${3 + DATA_OVERHEAD_BYTES}`,
    `credit ${DATA_OVERHEAD_BYTES}`,
  ]);
});

test('a waiting app is reported with the number of its messages, and receivers are served in order', async () => {
  const bench = new Bench();
  const first = bench.socket.receive();
  const second = bench.socket.receive();
  assert.deepEqual(bench.story.slice(1), ['waiting 0', 'waiting 0']);
  bench.hear('a');
  bench.hear('b');
  assert.deepEqual(await Promise.all([first, second]), ['a', 'b']);
  void bench.socket.receive();
  assert.equal(bench.story.at(-1), 'waiting 2');
});

test('while receivers still wait, the app is reported as waiting after each message', async () => {
  const bench = new Bench();
  const all = Promise.all([bench.socket.receive(), bench.socket.receive(), bench.socket.receive()]);
  bench.hear('a');
  assert.equal(bench.story.at(-1), 'waiting 1');
  bench.hear('b');
  assert.equal(bench.story.at(-1), 'waiting 2');
  bench.hear('c');
  assert.match(bench.story.at(-1) as string, /^credit/);
  assert.deepEqual(await all, ['a', 'b', 'c']);
});

test('a message is copied when it is sent: the app may use its buffer again', async () => {
  const bench = new Bench();
  const bytes = Buffer.from('aaa');
  void bench.socket.send(bytes);
  bytes.fill('b');
  await bench.socket.flushed();
  assert.equal(bench.tap.received.at(-1)?.body.toString(), 'aaa');
});

test('close follows earlier messages; after it nothing is sent or received', async () => {
  const bench = new Bench();
  bench.hear('unheard');
  void bench.socket.send('last');
  void bench.socket.close(4000, 'bye');
  await assert.rejects(bench.socket.send('too late'), { name: 'AbortError' });
  assert.equal(await bench.socket.receive(), null);
  bench.hear('later');
  assert.equal(await bench.socket.receive(), null);
  assert.deepEqual(bench.story.slice(1), [
    'data last 4',
    'close 4000 bye',
    `credit ${5 + DATA_OVERHEAD_BYTES}`,
  ]);
});

test('once the client has left, its messages can be received, waiting ends, and sends reject without a handler', async () => {
  const bench = new Bench(1);
  const blocked = bench.socket.send('12345');
  const behind = bench.socket.send('67890');
  await settle();
  bench.hear('a');
  bench.socket.cancel();
  assert.equal(await bench.socket.receive(), 'a');
  assert.equal(await bench.socket.receive(), null);
  await blocked; // all of it was on its way
  await assert.rejects(behind, { name: 'AbortError' });
  void bench.socket.send('without a handler');
  await settle();
  assert.equal(bench.story.filter((line) => line.startsWith('data')).length, 1);
});

test('iterating yields every message until the end', async () => {
  const bench = new Bench();
  for (const text of ['a', 'b', 'c']) bench.hear(text);
  bench.socket.cancel();
  const heard: unknown[] = [];
  for await (const message of bench.socket) heard.push(message);
  assert.deepEqual(heard, ['a', 'b', 'c']);
});

test('after the call has ended nothing leaves, whatever the app does', async () => {
  const bench = new Bench();
  bench.socket.end();
  const before = bench.story.length;
  bench.hear('a');
  assert.equal(await bench.socket.receive(), 'a');
  assert.equal(await bench.socket.receive(), null);
  await assert.rejects(bench.socket.send('x'));
  await assert.rejects(bench.socket.close());
  assert.equal(bench.story.length, before);
});
