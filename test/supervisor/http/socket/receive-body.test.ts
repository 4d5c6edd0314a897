import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import { ServeError } from '../../../../protocol/errors.js';
import type { Admission } from '../../../../supervisor/dispatch/arrivals.js';
import type { Body } from '../../../../supervisor/http/socket/body-memory.js';
import { bodyLimits, receiveBody, type BodyLimits } from '../../../../supervisor/http/socket/receive-body.js';

const LIMITS: BodyLimits = { announcedBytes: 0, maxBodyBytes: 100, bodyTimeoutMs: 10_000 };

/** An admission whose `grow` is the given function. */
function newPlace(grow: (bytes: number) => void = () => {}): Admission {
  return { begin: () => {}, grow, complete: () => {}, release: () => {} };
}

/** Receives `stream` as a request's body. */
function receive(
  stream: PassThrough,
  limits: Partial<BodyLimits> = {},
  place: Admission = newPlace(),
): Promise<Body> {
  const request = Object.assign(stream, { headers: {} }) as unknown as IncomingMessage;
  return receiveBody(request, { ...LIMITS, ...limits }, place);
}

function textOf({ pieces }: Body): string {
  return Buffer.concat(pieces).toString();
}

function closed(stream: PassThrough): Promise<void> {
  return new Promise((resolve) => stream.once('close', resolve));
}

test('a body is the same however it is split, and every byte is counted as it arrives', async () => {
  const cuts = fc.array(fc.string({ minLength: 1, maxLength: 8 }), { maxLength: 10 });
  await fc.assert(
    fc.asyncProperty(cuts, async (parts) => {
      const stream = new PassThrough();
      let counted = 0;
      const received = receive(
        stream,
        { maxBodyBytes: 1000 },
        newPlace((bytes) => (counted += bytes)),
      );
      for (const part of parts) stream.write(part);
      stream.end();
      const whole = parts.join('');
      const body = await received;
      assert.deepEqual([textOf(body), body.bytes], [whole, Buffer.byteLength(whole)]);
      assert.equal(counted, Buffer.byteLength(whole));
    }),
    { numRuns: 50 },
  );
});

test('small pieces are joined once there are many, and the order is kept when large ones are among them', async () => {
  const stream = new PassThrough();
  const received = receive(stream, { maxBodyBytes: 1e9 });
  const parts = Array.from({ length: 5000 }, (_, i) =>
    Buffer.alloc(i % 1000 === 999 ? 70_000 : 1 + (i % 90), i),
  );
  for (const part of parts) stream.write(part);
  stream.end();
  const { pieces, bytes } = await received;
  const whole = Buffer.concat(parts);
  assert.ok(Buffer.concat(pieces).equals(whole));
  assert.equal(bytes, whole.length);
  assert.ok(pieces.length < 40, `${pieces.length} pieces`);
});

test('with a limit of 100 bytes, a body of 100 in two pieces is accepted', async () => {
  const stream = new PassThrough();
  const received = receive(stream);
  stream.write(Buffer.alloc(60));
  stream.end(Buffer.alloc(40));
  assert.equal((await received).bytes, 100);
});

test('with a limit of 100 bytes, a body of 101 in two pieces is refused', async () => {
  const stream = new PassThrough();
  const received = receive(stream);
  stream.write(Buffer.alloc(60));
  stream.end(Buffer.alloc(41));
  await assert.rejects(received, { code: 'SERVE_BODY_TOO_LARGE' });
});

test('the admission may refuse the body at any piece', async () => {
  const stream = new PassThrough();
  let pieces = 0;
  const place = newPlace(() => {
    pieces += 1;
    if (pieces === 2) throw new ServeError('SERVE_QUEUE_FULL');
  });
  const received = receive(stream, {}, place);
  for (const piece of ['a', 'b', 'c']) stream.write(piece);
  stream.end();
  const gone = closed(stream);
  await assert.rejects(received, { code: 'SERVE_QUEUE_FULL' });
  await gone;
  assert.equal(pieces, 2, 'nothing is offered after the refusal');
});

test('a revoked admission fails the body with its reason, but not a complete body', async () => {
  const story: string[] = [];
  let evict: (error: ServeError) => void = () => {};
  const place: Admission = {
    begin: (onEvicted) => (evict = onEvicted),
    grow: () => {},
    complete: () => story.push('complete'),
    release: () => {},
  };
  const received = receive(new PassThrough(), {}, place);
  evict(new ServeError('SERVE_QUEUE_FULL'));
  await assert.rejects(received, { code: 'SERVE_QUEUE_FULL' });
  assert.deepEqual(story, []);

  const stream = new PassThrough();
  stream.end('abc');
  assert.equal(textOf(await receive(stream, {}, place)), 'abc');
  assert.deepEqual(story, ['complete']);
});

test('a client that disconnects while its body arrives fails it with SERVE_CANCELLED', async () => {
  const stream = new PassThrough();
  const received = receive(stream);
  stream.write('a');
  stream.destroy();
  await assert.rejects(received, { code: 'SERVE_CANCELLED' });
});

test('the memory of a large body is allocated as it arrives, whatever length was announced', async () => {
  const mib = 1024 * 1024;
  const stream = new PassThrough();
  const received = receive(stream, { announcedBytes: 3.5 * mib, maxBodyBytes: 10 * mib });
  const whole = Buffer.alloc(3.5 * mib, 'abcdefg');
  for (let at = 0; at < whole.length; at += 60_000) stream.write(whole.subarray(at, at + 60_000));
  stream.end();
  const { pieces, bytes } = await received;
  assert.deepEqual(
    pieces.map(({ length }) => length / mib),
    [1, 1, 1, 0.5],
  );
  assert.equal(bytes, whole.length);
  assert.ok(Buffer.concat(pieces).equals(whole));
});

test('a body longer than announced, which a strict parser never passes on, is refused', async () => {
  const stream = new PassThrough();
  const received = receive(stream, { announcedBytes: 300_000, maxBodyBytes: 1_000_000 });
  stream.write(Buffer.alloc(300_000));
  stream.end(Buffer.alloc(1));
  await assert.rejects(received, { code: 'SERVE_BAD_REQUEST' });
});

test('Content-Length is checked before a byte is read', () => {
  const announced = (length?: string): number => {
    const headers = length === undefined ? {} : { 'content-length': length };
    return bodyLimits({ headers } as IncomingMessage, 100, 1000).announcedBytes;
  };
  assert.equal(announced(), 0);
  assert.equal(announced('100'), 100);
  assert.throws(() => announced('101'), {
    code: 'SERVE_BODY_TOO_LARGE',
    message: /larger than 100 bytes \(--max-body\)/,
  });
});
