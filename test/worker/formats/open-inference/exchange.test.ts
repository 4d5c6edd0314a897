/** One call of the Open Inference Protocol, from its body and headers to its answer's. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tensor } from '../../../../protocol/values/tensor.js';
import { openInferenceExchange } from '../../../../worker/formats/open-inference.js';
import { PLAIN_HEAD, Reply, type ReplyBody } from '../../../../worker/formats/reply.js';
import { callWith } from '../../calls.js';
import { Bench } from '../../loop-bench.js';
import { serveError } from '../../refusals.js';
import { spec } from './tensors.js';

const JSON_BYTES = 'Inference-Header-Content-Length';

function exchange(headers = '', signature: Parameters<typeof openInferenceExchange>[1] = null) {
  const call = callWith({ headers, dialectParams: 'model=m%2Fn&version=2' });
  return openInferenceExchange(call, signature);
}

const X = { name: 'x', datatype: 'INT32', shape: [2], data: [1, 2] };
const bodyOf = (request: unknown): Buffer => Buffer.from(JSON.stringify(request));
const value = (given: unknown): Reply => new Reply(PLAIN_HEAD, { kind: 'value', value: given });

/** Status, content type, headers and body of an answer. */
function parts({ head, body }: Reply): unknown[] {
  assert.ok(body.kind === 'bytes');
  return [head.status, head.contentType, head.headers, Buffer.from(body.bytes).toString('latin1')];
}

test('the app gets tensors by name, and the client the outputs it asked for, with its id', () => {
  const call = exchange();
  const inputs = call.read(
    bodyOf({ id: 'i', inputs: [X], outputs: [{ name: 'y' }], parameters: { seed: 5 } }),
  );
  assert.deepEqual(inputs, { x: new Tensor('INT32', [2], Int32Array.of(1, 2)) });
  assert.deepEqual(call.params, { seed: 5 });
  assert.deepEqual(parts(call.write(value({ z: [1], y: inputs['x'] }))), [
    200,
    'application/json',
    '',
    '{"model_name":"m/n","model_version":"2","id":"i","outputs":[{"name":"y","datatype":"INT32","shape":[2],"data":[1,2]}]}',
  ]);
});

test('raw tensors behind the JSON, both ways, beside the headers of the app', () => {
  const json = bodyOf({
    inputs: [{ name: 'x', datatype: 'UINT8', shape: [2], parameters: { binary_data_size: 2 } }],
    parameters: { binary_data_output: true },
  });
  const call = exchange(`Host\na\n${JSON_BYTES.toLowerCase()}\n${json.length}`);
  const inputs = call.read(Buffer.concat([json, Buffer.from('AB')]));
  const head = { ...PLAIN_HEAD, status: 201, contentType: 'application/json', headers: 'X-A\n1' };
  const reply = call.write(new Reply(head, { kind: 'json', value: inputs }));
  const text =
    '{"model_name":"m/n","model_version":"2","outputs":[{"name":"x","datatype":"UINT8","shape":[2],"parameters":{"binary_data_size":2}}]}';
  const headers = `X-A\n1\n${JSON_BYTES}\n${text.length}`;
  assert.deepEqual(parts(reply), [201, 'application/octet-stream', headers, `${text}AB`]);
});

for (const length of ['-1', '1.5', 'all', '', '9'.repeat(30), '1, 1'])
  test(`the header ${JSON_BYTES}: ${length} is refused`, () => {
    const call = exchange(`${JSON_BYTES}\n${length}`);
    const refusal = serveError(
      'SERVE_BAD_BODY',
      /^Inference-Header-Content-Length must be a whole number of bytes, not "/,
    );
    assert.throws(() => call.read(bodyOf({ inputs: [X] })), refusal);
  });

test('a signature checks the inputs and names the output', () => {
  const signature = { inputs: [spec('INT32', [-1])], outputs: [spec('FP32', [-1], 'y')] };
  const call = exchange('', signature);
  const wrong = bodyOf({ inputs: [{ ...X, datatype: 'INT64' }] });
  assert.throws(
    () => call.read(wrong),
    serveError('SERVE_BAD_BODY', /the model wants INT32 .* but got INT64/),
  );
  call.read(bodyOf({ inputs: [X] }));
  const [, , , text] = parts(call.write(value([0.5])));
  assert.match(
    String(text),
    /"outputs":\[\{"name":"y","datatype":"FP32","shape":\[1\],"data":\[0\.5\]\}\]\}$/,
  );
});

test('a whole body is the input of a signature of one', () => {
  const call = exchange(`${JSON_BYTES}\n0`, { inputs: [spec('UINT8', [-1])], outputs: [] });
  assert.deepEqual(call.read(Buffer.from('AB')), { x: new Tensor('UINT8', [2], Uint8Array.of(65, 66)) });
  assert.equal(parts(call.write(value(Uint8Array.of(65))))[1], 'application/octet-stream');
});

for (const [what, body, text] of [
  ['JSON with an error', { kind: 'json', value: { error: 'é' } }, 'é'],
  ['JSON with a message', { kind: 'json', value: { message: 'no' } }, 'no'],
  ['an error with a message', { kind: 'json', value: { error: { message: 'no' } } }, 'no'],
  ['other JSON', { kind: 'json', value: [1] }, '[1]'],
  ['text', { kind: 'bytes', bytes: Buffer.from('no') }, 'no'],
  ['bytes', { kind: 'bytes', bytes: Buffer.from([0xff]) }, 'The app refused this call.'],
] as readonly [string, ReplyBody, string][])
  test(`an error that the app answers as ${what} has the shape of the protocol`, () => {
    const head = { status: 409, contentType: 'text/plain', headers: 'X-A\n1', phrase: '' };
    const bytes = Buffer.from(JSON.stringify({ error: text })).toString('latin1');
    assert.deepEqual(parts(exchange().write(new Reply(head, body))), [
      409,
      'application/json',
      'X-A\n1',
      bytes,
    ]);
  });

test('the error in a body of JSON is its message', () => {
  const head = { ...PLAIN_HEAD, status: 409, contentType: 'application/json; charset=utf-8' };
  for (const [body, text] of [
    ['{"message":"no"}', 'no'],
    ['{', '{'],
  ] as const) {
    const reply = exchange().write(new Reply(head, { kind: 'bytes', bytes: Buffer.from(body) }));
    assert.equal(parts(reply)[3], JSON.stringify({ error: text }));
  }
});

test('streams and bodies of the app’s own are refused', () => {
  for (const body of [
    { kind: 'stream', iterator: [][Symbol.iterator]() },
    { kind: 'bytes', bytes: Buffer.from('a') },
  ] as const) {
    const refusal = serveError('SERVE_HTTP_ERROR', /^This app .*; a call of its own route gets it\.$/);
    assert.throws(() => exchange().write(new Reply(PLAIN_HEAD, body)), refusal);
  }
});

test('calls of a worker get tensors, and each its own bytes back', async () => {
  const bench = new Bench(() => assert.fail('ran alone'), {
    handleBatch: (inputs) => inputs.map((input) => ({ y: (input as { x: Tensor }).x })),
  });
  const values = [1, 2, 3];
  const bodies = values.map((one) => {
    const raw = String.fromCharCode(one, 0, 0, 0);
    return `{"inputs":[{"name":"x","datatype":"INT32","shape":[1],"parameters":{"binary_data_size":4}}]}${raw}`;
  });
  const headers = `${JSON_BYTES}\n${(bodies[0] as string).length - 4}`;
  bench.batch(1, bodies, { format: 'open-inference', answer: 'open-inference', headers });
  for (const value of values) {
    await bench.ended(value);
    const { body } = bench.of('result', value) ?? assert.fail(bench.story.join('; '));
    assert.match(body.toString(), new RegExp(`"outputs":\\[\\{"name":"y",.*"data":\\[${value}\\]`));
  }
});
