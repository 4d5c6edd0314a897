import assert from 'node:assert/strict';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { deflateSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import type { Admission } from '../../../../supervisor/dispatch/arrivals.js';
import { bodyLimits, codingsOf, receiveBody } from '../../../../supervisor/http/socket/receive-body.js';
import type { Body } from '../../../../supervisor/http/socket/body-memory.js';

const KB = 1024;
const MB = KB * KB;
type Coding = keyof typeof CODERS;
const CODERS = { gzip: gzipSync, 'x-gzip': gzipSync, deflate: deflateSync };

function coded(bytes: Uint8Array, codings: readonly Coding[]): Buffer {
  return codings.reduce<Buffer>((sum, coding) => CODERS[coding](sum), Buffer.from(bytes));
}

/** Receives `stream` as a body of these codings; counts the decoded bytes. */
function receive(
  stream: PassThrough,
  codings: readonly string[],
  maxBodyBytes = MB,
): { body: Promise<Body>; counted: () => number } {
  let counted = 0;
  const place: Admission = {
    begin: () => {},
    grow: (bytes) => (counted += bytes),
    complete: () => {},
    release: () => {},
  };
  const headers = { 'content-encoding': codings.join(', ') };
  const request = Object.assign(stream, { headers }) as unknown as IncomingMessage;
  const limits = { announcedBytes: 0, maxBodyBytes, bodyTimeoutMs: 10_000 };
  return { body: receiveBody(request, limits, place), counted: () => counted };
}

const someCodings = fc.array(fc.constantFrom<Coding>('gzip', 'x-gzip', 'deflate'), {
  minLength: 1,
  maxLength: 3,
});

test('a compressed body decodes to the original, in any order of codings and however it is split', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ maxLength: 500 }),
      someCodings,
      fc.nat(200),
      async (bytes, codings, cut) => {
        const stream = new PassThrough();
        const { body, counted } = receive(stream, codings);
        const whole = coded(bytes, codings);
        stream.write(whole.subarray(0, cut));
        stream.end(whole.subarray(cut));
        const { pieces, bytes: total } = await body;
        assert.ok(Buffer.concat(pieces).equals(bytes));
        assert.deepEqual([total, counted()], [bytes.length, bytes.length]);
      },
    ),
    { numRuns: 50 },
  );
});

test('a large compressed body arrives complete', async () => {
  const bytes = Buffer.from(Array.from({ length: 400_000 }, (_, i) => `${i}`).join());
  const stream = new PassThrough();
  const { body } = receive(stream, ['gzip'], 10 * MB);
  stream.end(gzipSync(bytes));
  assert.ok(Buffer.concat((await body).pieces).equals(bytes));
});

for (const codings of [['gzip'], ['gzip', 'gzip']] as const) {
  test(`a body that expands (${codings.join()}) is refused at the limit, and its decoding stops`, async () => {
    const stream = new PassThrough();
    const closed = new Promise((resolve) => stream.once('close', resolve));
    const { body, counted } = receive(stream, codings, 100 * KB);
    stream.end(coded(Buffer.alloc(64 * MB), codings));
    await assert.rejects(body, { code: 'SERVE_BODY_TOO_LARGE' });
    await closed; // the rest is discarded
    assert.ok(counted() <= 100 * KB, `${counted()} bytes are counted`);
  });
}

test('bytes that decode to nothing are limited too', async () => {
  const stream = new PassThrough();
  const { body } = receive(stream, ['gzip'], 1000);
  const nothing = gzipSync('');
  for (let i = 0; i < 100; i += 1) stream.write(nothing);
  await assert.rejects(body, { code: 'SERVE_BODY_TOO_LARGE' });
});

for (const [what, bytes] of [
  ['that is not compressed', Buffer.from('{"a":1}')],
  ['that is cut off', gzipSync('hello hello hello').subarray(0, 15)],
  ['whose checksum is wrong', Buffer.concat([gzipSync('hello').subarray(0, -8), Buffer.alloc(8)])],
] as const) {
  test(`a body ${what} is SERVE_BAD_BODY, whichever layer it is`, async () => {
    for (const [codings, sent] of [
      [['gzip'], bytes],
      [['gzip', 'deflate'], deflateSync(bytes)],
    ] as const) {
      const stream = new PassThrough();
      const { body } = receive(stream, codings);
      stream.end(sent);
      await assert.rejects(body, { code: 'SERVE_BAD_BODY', message: /^The body is not valid gzip/ });
    }
  });
}

test('a client that disconnects during a compressed body is SERVE_CANCELLED', async () => {
  const stream = new PassThrough();
  const { body } = receive(stream, ['gzip']);
  stream.write(gzipSync('hello').subarray(0, 5));
  stream.destroy();
  await assert.rejects(body, { code: 'SERVE_CANCELLED' });
});

for (const [headers, codings] of [
  [{}, []],
  [{ 'transfer-encoding': 'chunked' }, []],
  [{ 'content-encoding': 'identity' }, []],
  [{ 'content-encoding': 'GZIP' }, ['gzip']],
  [{ 'content-encoding': 'deflate, x-gzip' }, ['deflate', 'x-gzip']],
  [{ 'transfer-encoding': 'gzip, chunked' }, ['gzip']],
  [{ 'content-encoding': 'deflate', 'transfer-encoding': 'gzip, chunked' }, ['deflate', 'gzip']],
] as const satisfies (readonly [IncomingHttpHeaders, readonly Coding[]])[]) {
  test(`${JSON.stringify(headers)}has the codings ${codings.join(' and ') || 'none'}`, () => {
    assert.deepEqual(codingsOf({ headers }), codings);
  });
}

for (const coding of ['br', 'zstd', 'compress', 'toString', 'gzip, gzip, gzip, gzip']) {
  test(`a body with the coding ${coding} is refused before it is read`, () => {
    const request = { headers: { 'content-encoding': coding } } as unknown as IncomingMessage;
    assert.throws(() => bodyLimits(request, MB, 1000), { code: 'SERVE_UNSUPPORTED_CODING' });
  });
}

test('the announced length of a compressed body is not used as its decoded length', () => {
  const request = { headers: { 'content-encoding': 'gzip', 'content-length': '100' } };
  assert.equal(bodyLimits(request as unknown as IncomingMessage, MB, 1000).announcedBytes, 0);
});
