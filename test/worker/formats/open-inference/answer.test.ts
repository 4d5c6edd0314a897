/** Answers of the Open Inference Protocol: JSON and binary, from tensors by name. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Tensor } from '../../../../protocol/values/tensor.js';
import { writeAnswer } from '../../../../worker/formats/open-inference.js';
import { readRequest, type WantedOutputs } from '../../../../worker/formats/open-inference/request.js';
import { serveError } from '../../refusals.js';
import { anyTensor } from './tensors.js';

const HEAD = { model: 'm', version: '1', id: '', asciiJson: false };
const JSON_ALL: WantedOutputs = { named: null, binary: false };
const BINARY_ALL: WantedOutputs = { named: null, binary: true };

type Answer = ReturnType<typeof writeAnswer>;
type Tensors = Readonly<Record<string, Tensor>>;

function write(outputs: Tensors, wanted = JSON_ALL, head = HEAD): Answer {
  return writeAnswer(head, new Map(Object.entries(outputs)), wanted);
}

const textOf = (outputs: Tensors): string => write(outputs).body.toString();

/** Reads an answer as if its outputs were the inputs of a request. */
function readBack({ body, jsonBytes }: Answer): Tensors {
  const json = body.toString('utf8', 0, jsonBytes ?? body.length).replace('"outputs":', '"inputs" :');
  const request = Buffer.concat([Buffer.from(json), body.subarray(jsonBytes ?? body.length)]);
  return readRequest(request, jsonBytes, null).inputs;
}

/** The tensor as JSON carries it: NaN of 16 bits are of many kinds, and 0 has a sign. */
function asJsonHasIt({ datatype, shape, data }: Tensor): Tensor {
  if (datatype !== 'FP16' && datatype !== 'BF16') return new Tensor(datatype, shape, data);
  const infinity = datatype === 'FP16' ? 0x7c00 : 0x7f80;
  const quiet = datatype === 'FP16' ? 0x7e00 : 0x7fc0;
  const bits = (data as Uint16Array).map((one) => {
    if ((one & 0x7fff) > infinity) return quiet;
    return one === 0x8000 ? 0 : one;
  });
  return new Tensor(datatype, shape, bits);
}

test('any tensor comes back from its JSON', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 5 }).map((chars) => Buffer.from(chars));
  fc.assert(
    fc.property(anyTensor(text), (tensor) => {
      const { x } = readBack(write({ x: tensor }));
      const [read, sent] = [x as Tensor, asJsonHasIt(tensor)];
      assert.deepEqual([read.datatype, read.shape], [sent.datatype, sent.shape]);
      assert.equal(String(read.data), String(sent.data)); // in which -0 is 0
    }),
    { numRuns: 500 },
  );
});

test('any tensors come back from their bytes, bit by bit', () => {
  fc.assert(
    fc.property(anyTensor(), anyTensor(), fc.boolean(), (x, y, isMixed) => {
      const named = new Map([['x', true], ['y', !isMixed]]); // prettier-ignore
      const text = isMixed ? new Tensor('INT64', [1], BigInt64Array.of(-5n)) : y;
      const read = readBack(write({ x, y: text }, { named, binary: false }));
      assert.deepEqual(read, { x, y: text });
    }),
    { numRuns: 500 },
  );
});

test('an answer has the model, its version, and the id if there is one', () => {
  const x = new Tensor('INT32', [1, 2], Int32Array.of(1, -2));
  const outputs = '"outputs":[{"name":"x","datatype":"INT32","shape":[1,2],"data":[1,-2]}]';
  assert.equal(textOf({ x }), `{"model_name":"m","model_version":"1",${outputs}}`);
  const { body, contentType, jsonBytes } = write({ x }, JSON_ALL, { ...HEAD, id: 'i"1' });
  assert.equal(body.toString(), `{"model_name":"m","model_version":"1","id":"i\\"1",${outputs}}`);
  assert.deepEqual([contentType, jsonBytes], ['application/json', null]);
});

for (const [tensor, data] of [
  [
    new Tensor('INT64', [2], BigInt64Array.of(-(2n ** 63n), 2n ** 63n - 1n)),
    '-9223372036854775808,9223372036854775807',
  ],
  [new Tensor('UINT64', [1], BigUint64Array.of(2n ** 64n - 1n)), '18446744073709551615'],
  [new Tensor('FP64', [4], Float64Array.of(0.1, NaN, Infinity, -Infinity)), '0.1,NaN,Infinity,-Infinity'],
  [new Tensor('FP16', [2], Uint16Array.of(0x3c00, 0xfc00)), '1,-Infinity'],
  [new Tensor('BF16', [1], Uint16Array.of(0x4049)), '3.140625'],
  [new Tensor('BOOL', [2], Uint8Array.of(1, 0)), 'true,false'],
  [new Tensor('BYTES', [3], ['é"', Buffer.from('\u0000'), '']), '"é\\"","\\u0000",""'],
  [new Tensor('FP32', [0], new Float32Array(0)), ''],
] as const)
  test(`${tensor.datatype} is written as [${data}]`, () =>
    assert.ok(textOf({ x: tensor }).endsWith(`"data":[${data}]}]}`), textOf({ x: tensor })));

test('text beyond ASCII is escaped for clients that break it, and the length counts what is sent', () => {
  const outputs = { é: new Tensor('BYTES', [1], ['é']), raw: new Tensor('UINT8', [1], Uint8Array.of(0xff)) };
  const named = new Map([['é', false], ['raw', true]]); // prettier-ignore
  const { body, jsonBytes } = write(outputs, { named, binary: false }, { ...HEAD, asciiJson: true });
  assert.equal(body.length, (jsonBytes ?? 0) + 1);
  assert.match(body.toString('latin1', 0, jsonBytes ?? 0), /^[\x20-\x7e]*"name":"\\u00e9"[\x20-\x7e]*$/);
  const { body: plain, jsonBytes: bytes } = write(outputs, { named, binary: false });
  assert.equal(plain.length, (bytes ?? 0) + 1);
});

test('bytes follow the JSON, in the order of the request, with their sizes', () => {
  const a = new Tensor('UINT16', [2], Uint16Array.of(1, 0x0203));
  const b = new Tensor('BYTES', [2], ['é', Buffer.from([0xff])]);
  const { body, contentType, jsonBytes } = write({ a, b }, { named: new Map([['b', true], ['a', true]]), binary: false }); // prettier-ignore
  assert.equal(contentType, 'application/octet-stream');
  const head = JSON.parse(body.toString('utf8', 0, jsonBytes ?? 0)) as { outputs: unknown[] };
  assert.deepEqual(head.outputs, [
    { name: 'b', datatype: 'BYTES', shape: [2], parameters: { binary_data_size: 11 } },
    { name: 'a', datatype: 'UINT16', shape: [2], parameters: { binary_data_size: 4 } },
  ]);
  assert.equal(body.subarray(jsonBytes ?? 0).toString('hex'), '02000000c3a901000000ff01000302');
});

test('only the wanted outputs are written, and one that the model did not return is refused', () => {
  const x = new Tensor('UINT8', [1], Uint8Array.of(1));
  const y = new Tensor('BYTES', [1], [Buffer.from([0xff])]); // no JSON, but it is not asked for
  assert.deepEqual(
    Object.keys(readBack(write({ x, y }, { named: new Map([['x', false]]), binary: false }))),
    ['x'],
  );
  const missing = serveError(
    'SERVE_HTTP_ERROR',
    /^The model returned no output "z"; it returned "x", "y"\.$/,
  );
  assert.throws(() => write({ x, y }, { named: new Map([['z', false]]), binary: false }), missing);
});

test('what is not UTF-8 cannot leave as JSON; the error names the cure', () => {
  const x = new Tensor('BYTES', [2], ['a', Buffer.from([0xff])]);
  const refusal = serveError(
    'SERVE_HTTP_ERROR',
    /^Output "x": element 1 is not text in UTF-8, .*ask for it with the parameter "binary_data": true\.$/,
  );
  assert.throws(() => write({ x }), refusal);
  assert.deepEqual(readBack(write({ x }, BINARY_ALL))['x']?.data, [Buffer.from('a'), Buffer.from([0xff])]);
});

test('half a surrogate pair leaves neither as JSON nor as bytes', () => {
  const x = new Tensor('BYTES', [1], ['\ud800']);
  assert.throws(() => write({ x }), serveError('SERVE_HTTP_ERROR', /not text in UTF-8/));
  assert.throws(
    () => write({ x }, BINARY_ALL),
    serveError('SERVE_OUTPUT_INVALID', /half of a surrogate pair/),
  );
});
