import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as v from 'valibot';
import { type } from 'arktype';
import { z } from 'zod';
import { ServeError } from '../../../protocol/errors.js';
import { fromBananaApp } from '../../../worker/adapters/banana-app.js';
import { fromPotassiumApp } from '../../../worker/adapters/potassium-app.js';
import { acceptedInput, acceptedOutput } from '../../../worker/adapters/schemas.js';
import { Potassium } from '../../../worker/api/potassium/potassium.js';
import { Response as PotassiumResponse } from '../../../worker/api/potassium/response.js';
import { Tensor } from '../../../protocol/values/tensor.js';
import { Reply } from '../../../worker/formats/reply.js';

const inference = (): null => null;
const SIGNATURE = { inputs: [], outputs: [] };

test('whatever has ~standard is a schema, a function too; other exports of these names are left alone', () => {
  const input = type({ a: 'number' });
  assert.equal(typeof input, 'function');
  const app = fromBananaApp({ inference, input, output: { shape: [1] } });
  assert.equal(app?.schemas?.('/')?.input, input);
  assert.equal(app?.schemas?.('/')?.output, undefined);
  assert.equal(fromBananaApp({ inference, input: 'text', output: () => 1 })?.schemas, undefined);
});

test('a schema has no place beside a signature, on a WebSocket, for the result of a job, or in a legacy handler', () => {
  const input = z.object({});
  assert.throws(() => fromBananaApp({ inference, input, signature: SIGNATURE }), /`signature` .*a schema/);
  const app = new Potassium('p');
  app.handler('/r', { input }, () => new PotassiumResponse({ json: 1 }));
  assert.throws(() => fromPotassiumApp({ app, signature: SIGNATURE }), /`signature` .*\/r has a schema/);
  const loose = app as unknown as Record<string, (...given: unknown[]) => unknown>;
  assert.throws(() => loose['websocket']?.('/ws', () => null, { input }), /websocket\('\/ws'\): input/);
  assert.throws(() => loose['websocket']?.('/ws2', { input }, () => null), /websocket\('\/ws2'\): input/);
  assert.throws(
    () => loose['background']?.('/b', { output: input }, () => null),
    /background\('\/b'\): output/,
  );
  assert.throws(() => loose['handler']?.(() => null, { input }), /takes no schema/);
  assert.throws(() => loose['handler']?.('/x', { input: 'json' }, () => null), /input must be a schema/);
});

test('typed arrays are plain for a schema, bytes are not, and nothing is copied that has none', () => {
  const schema = z.object({ vector: z.array(z.number()), raw: z.instanceof(Uint8Array) });
  const raw = Uint8Array.of(1);
  assert.deepEqual(acceptedInput(schema, { vector: Float32Array.of(1), raw }), { vector: [1], raw });
  const given = { deep: [{ list: [1, 2] }] };
  assert.equal(acceptedInput(z.custom(), given), given);
});

test('a tensor is nested lists for a schema, but one of bytes, or of halves, whose data are bits, is itself', () => {
  const schema = z.custom<unknown>();
  const listsOf = (tensor: Tensor): unknown => acceptedInput(schema, { tensor });
  for (const [shape, tensor] of [
    [[], 1],
    [[3], [1, 2, 3]],
    [[1, 3], [[1, 2, 3]]],
    [
      [3, 1],
      [[1], [2], [3]],
    ],
    [
      [2, 1, 2],
      [[[1, 2]], [[3, 4]]],
    ],
    [[0], []],
    [
      [2, 0, 3],
      [[], []],
    ],
  ] as const) {
    const data = Float32Array.from([tensor].flat(3) as number[]);
    assert.deepEqual(listsOf(new Tensor('FP32', shape, data)), { tensor });
  }
  const flags = new Tensor('BOOL', [2], Uint8Array.of(1, 0));
  assert.deepEqual(listsOf(flags), { tensor: [true, false] });
  for (const tensor of [
    new Tensor('BYTES', [1], [Buffer.from('a')]),
    new Tensor('FP16', [1], Uint16Array.of(0)),
  ])
    assert.deepEqual(listsOf(tensor), { tensor });
});

test('an answer is checked in a Response of ours too; streams, bytes, errors and other statuses are not', async () => {
  const schema = v.object({ a: v.number() });
  const wrong = { a: 'x' };
  assert.throws(() => acceptedOutput(schema, wrong), isInvalidOutput);
  assert.throws(() => acceptedOutput(schema, new PotassiumResponse({ json: wrong })), isInvalidOutput);
  await assert.rejects(Promise.resolve(acceptedOutput(schema, Promise.resolve(wrong))), isInvalidOutput);
  await assert.rejects(Promise.resolve(acceptedOutput(schema, Response.json(wrong))), isInvalidOutput);
  const stream = acceptedOutput(schema, new Blob(['a']).stream());
  assert.ok(stream instanceof Reply && stream.body.kind === 'stream');
  for (const output of [Buffer.from('a'), new Blob(['a']), new Error('e'), new Response('text')])
    assert.equal(acceptedOutput(schema, output), output);
  const refused = acceptedOutput(schema, new PotassiumResponse({ status: 404, json: wrong }));
  assert.ok(refused instanceof Reply && refused.head.status === 404);
});

test('a schema that refuses a value without an issue is named as the reason', () => {
  const validate = (): { issues: [] } => ({ issues: [] });
  const schema = { '~standard': { version: 1 as const, vendor: 'own', validate } };
  assert.throws(() => acceptedInput(schema, 1), /The input is invalid: the schema gives no reason\.$/);
  assert.throws(() => acceptedOutput(schema, 1), /does not fit its schema: the schema gives no reason\.$/);
});

function isInvalidOutput(thrown: unknown): boolean {
  assert.ok(thrown instanceof ServeError);
  assert.equal(thrown.code, 'SERVE_OUTPUT_INVALID');
  assert.match(thrown.message, /a: /);
  return true;
}
