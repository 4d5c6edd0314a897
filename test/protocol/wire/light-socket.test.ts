import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { lighten, type LightSocket } from '../../../protocol/wire/light-socket.js';
import { closed, nextTurn, socketPair } from '../streams.js';

test('bytes arrive complete and in order, in chunks that are not overwritten later', async (t) => {
  const { a, b } = await socketPair(t);
  const light = lighten(b);
  t.after(() => light.destroy());
  assert.notEqual(light, b, 'this Node has the field that it needs');
  const parts = [1, 200, 5000, 40_000, 64 * 1024, 1_000_000, 3, 300_000].map((bytes) => randomBytes(bytes));
  const chunks: Buffer[] = [];
  light.on('data', (chunk: Buffer) => chunks.push(chunk));
  for (const part of parts) {
    a.write(part);
    await nextTurn();
  }
  a.end();
  await once(light, 'end');
  assert.ok(Buffer.concat(chunks).equals(Buffer.concat(parts)));
});

test('bytes with a room are read into it, and bytes before and after it arrive as chunks', async (t) => {
  const { a, b } = await socketPair(t);
  const light = lighten(b) as LightSocket;
  t.after(() => light.destroy());
  const sent = randomBytes(1_000_000);
  const body = Buffer.alloc(600_000);
  const chunks: Buffer[] = [];
  let filled = 0;
  light.readInto(
    () => (chunks.length > 0 && filled < body.length ? body.subarray(filled) : null),
    (bytes) => void (filled += bytes),
  );
  const all = new Promise<void>((resolve) => {
    light.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      if (filled + Buffer.concat(chunks).length === sent.length) resolve();
    });
  });
  a.write(sent);
  await all;
  assert.equal(filled, body.length);
  const [first, ...rest] = chunks as [Buffer, ...Buffer[]];
  assert.ok(Buffer.concat([first, body, ...rest]).equals(sent));
});

test('a small chunk keeps no more memory alive than any small buffer', async (t) => {
  const { a, b } = await socketPair(t);
  const light = lighten(b);
  t.after(() => light.destroy());
  const chunk = once(light, 'data') as Promise<[Buffer]>;
  a.write('little');
  const [bytes] = await chunk;
  assert.equal(bytes.toString(), 'little');
  assert.ok(bytes.buffer.byteLength <= Buffer.from(bytes).buffer.byteLength);
});

test('a light socket ends and closes as the socket it replaced would, and leaves that one alone', async (t) => {
  const { a, b } = await socketPair(t);
  const light = lighten(b);
  light.resume();
  const over = closed(light);
  a.end();
  await over;
  assert.ok(light.readableEnded);
  b.resume(); // as Node does with the pipes of a child that has exited
  b.destroy();
  await nextTurn();
});

test('a socket without the field stays as it is', () => {
  const socket = new Socket();
  assert.equal(lighten(socket), socket);
});
