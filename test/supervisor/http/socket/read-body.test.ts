import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import { ServeError } from '../../../../protocol/errors.js';
import {
  announcedBytes,
  readBody,
  type BodyEvents,
  type BodyLimits,
} from '../../../../supervisor/http/socket/read-body.js';

interface Outcome {
  body: string | null;
  bytes: number;
  failed: string[];
}

/** Reads `stream` as a request and notes what is told. */
function read(
  stream: PassThrough,
  limits: Partial<BodyLimits> = {},
  onBytes: BodyEvents['onBytes'] = () => {},
): Outcome {
  const outcome: Outcome = { body: null, bytes: 0, failed: [] };
  readBody(
    stream as unknown as IncomingMessage,
    { announcedBytes: 0, maxBodyBytes: 100, bodyTimeoutMs: 10_000, ...limits },
    {
      onBytes,
      onWhole: (pieces, bytes) => {
        outcome.body = Buffer.concat(pieces).toString();
        outcome.bytes = bytes;
      },
      onFailed: (error) => outcome.failed.push(error.code),
    },
  );
  return outcome;
}

/** Resolves when a body of which nothing comes is refused. */
function pausedTooLong(bodyTimeoutMs: number): Promise<void> {
  const request = new PassThrough() as unknown as IncomingMessage;
  const limits = { announcedBytes: 0, maxBodyBytes: 100, bodyTimeoutMs };
  return new Promise((resolve, reject) => {
    readBody(request, limits, { onBytes: () => {}, onWhole: reject, onFailed: () => resolve() });
  });
}

function closed(stream: PassThrough): Promise<void> {
  return new Promise((resolve) => stream.once('close', resolve));
}

test('a body is the same however it is cut, and every byte is counted as it comes', async () => {
  const cuts = fc.array(fc.string({ minLength: 1, maxLength: 8 }), { maxLength: 10 });
  await fc.assert(
    fc.asyncProperty(cuts, async (parts) => {
      const stream = new PassThrough();
      let counted = 0;
      const outcome = read(stream, { maxBodyBytes: 1000 }, (bytes) => (counted += bytes));
      const gone = closed(stream);
      for (const part of parts) stream.write(part);
      stream.end();
      await gone;
      const whole = parts.join('');
      assert.deepEqual(outcome, { body: whole, bytes: Buffer.byteLength(whole), failed: [] });
      assert.equal(counted, Buffer.byteLength(whole));
    }),
    { numRuns: 50 },
  );
});

for (const [bytes, failed] of [
  [100, []],
  [101, ['SERVE_BODY_TOO_LARGE']],
] as const) {
  test(`of 100 bytes allowed, ${bytes} in two pieces ${failed.length === 0 ? 'are taken' : 'are refused, once'}`, async () => {
    const stream = new PassThrough();
    const outcome = read(stream);
    stream.write(Buffer.alloc(60));
    stream.end(Buffer.alloc(bytes - 60));
    stream.resume();
    await closed(stream);
    assert.deepEqual(outcome.failed, failed);
    assert.equal(outcome.body === null, failed.length > 0);
  });
}

test('the owner may refuse the rest at any piece', async () => {
  const stream = new PassThrough();
  let pieces = 0;
  const outcome = read(stream, {}, () => {
    pieces += 1;
    if (pieces === 2) throw new ServeError('SERVE_QUEUE_FULL');
  });
  for (const piece of ['a', 'b', 'c']) stream.write(piece);
  stream.end();
  stream.resume();
  await closed(stream);
  assert.deepEqual(outcome, { body: null, bytes: 0, failed: ['SERVE_QUEUE_FULL'] });
  assert.equal(pieces, 2, 'nothing is offered after the refusal');
});

test('a client that leaves is told nothing', async () => {
  const stream = new PassThrough();
  const outcome = read(stream, { bodyTimeoutMs: 20 });
  stream.write('a');
  stream.destroy();
  await closed(stream);
  await pausedTooLong(20); // began later than the one that left, whose time must be over as well
  assert.deepEqual(outcome, { body: null, bytes: 0, failed: [] });
});

test('a large body whose size was announced arrives as one piece', async () => {
  const parts = Array.from({ length: 9 }, (_, i) => Buffer.alloc(64 * 1024, i));
  const announced = parts.length * 64 * 1024;
  const stream = new PassThrough();
  const whole = new Promise<Buffer[]>((resolve, reject) => {
    readBody(
      stream as unknown as IncomingMessage,
      { announcedBytes: announced, maxBodyBytes: announced, bodyTimeoutMs: 10_000 },
      { onBytes: () => {}, onWhole: resolve, onFailed: reject },
    );
  });
  for (const part of parts) stream.write(part);
  stream.end();
  const [body, ...others] = await whole;
  assert.equal(others.length, 0);
  assert.ok(body?.equals(Buffer.concat(parts)));
});

test('a body longer than announced, which a strict parser lets never through, is refused', async () => {
  const stream = new PassThrough();
  const refused = new Promise<string>((resolve) => {
    readBody(
      stream as unknown as IncomingMessage,
      { announcedBytes: 300_000, maxBodyBytes: 1_000_000, bodyTimeoutMs: 10_000 },
      { onBytes: () => {}, onWhole: () => resolve('whole'), onFailed: ({ code }) => resolve(code) },
    );
  });
  stream.write(Buffer.alloc(300_000));
  stream.end(Buffer.alloc(1));
  assert.equal(await refused, 'SERVE_BAD_REQUEST');
});

test('a pause longer than the limit is SERVE_REQUEST_TIMEOUT', async () => {
  const stream = new PassThrough();
  const startedAtMs = performance.now();
  const failed = new Promise<string>((resolve) => {
    readBody(
      stream as unknown as IncomingMessage,
      { announcedBytes: 0, maxBodyBytes: 100, bodyTimeoutMs: 50 },
      { onBytes: () => {}, onWhole: () => resolve('whole'), onFailed: ({ code }) => resolve(code) },
    );
  });
  stream.write('a');
  assert.equal(await failed, 'SERVE_REQUEST_TIMEOUT');
  assert.ok(performance.now() - startedAtMs >= 49, 'not before the limit');
});

test('Content-Length is checked before a byte is read', () => {
  const announced = (length?: string): number => {
    const headers = length === undefined ? {} : { 'content-length': length };
    return announcedBytes({ headers } as IncomingMessage, 100);
  };
  assert.equal(announced(), 0);
  assert.equal(announced('100'), 100);
  assert.throws(() => announced('101'), {
    code: 'SERVE_BODY_TOO_LARGE',
    message: /larger than 100 bytes \(--max-body\)/,
  });
});
