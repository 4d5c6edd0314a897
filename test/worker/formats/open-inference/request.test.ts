/** Requests of the Open Inference Protocol: JSON and binary. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { DATATYPES, Tensor } from '../../../../protocol/values/tensor.js';
import { readRequest, type InferRequest } from '../../../../worker/formats/open-inference/request.js';
import { serveError } from '../../refusals.js';
import { anyTensor, spec } from './tensors.js';

type Fields = Readonly<Record<string, unknown>>;

function readText(text: string): InferRequest {
  return readRequest(Buffer.from(text), null, null);
}

function read(request: unknown): InferRequest {
  return readText(JSON.stringify(request));
}

/** Reads one input named x. */
function readX(fields: Fields): Tensor {
  return read({ inputs: [{ name: 'x', ...fields }] }).inputs['x'] ?? assert.fail();
}

/** A body with raw bytes behind its JSON. */
function binary(request: unknown, ...raw: readonly Uint8Array[]): { body: Buffer; jsonBytes: number } {
  const json = Buffer.from(JSON.stringify(request));
  return { body: Buffer.concat([json, ...raw]), jsonBytes: json.length };
}

function readBinary(request: unknown, ...raw: readonly Uint8Array[]): InferRequest {
  const { body, jsonBytes } = binary(request, ...raw);
  return readRequest(body, jsonBytes, null);
}

const sized = (size: unknown): Fields => ({ parameters: { binary_data_size: size } });

for (const [datatype, values, data] of [
  ['BOOL', [true, false], Uint8Array.of(1, 0)],
  ['UINT8', [0, 255], Uint8Array.of(0, 255)],
  ['UINT16', [0, 65535], Uint16Array.of(0, 65535)],
  ['UINT32', [0, 4294967295], Uint32Array.of(0, 4294967295)],
  ['UINT64', [0, 9007199254740991], BigUint64Array.of(0n, 9007199254740991n)],
  ['INT8', [-128, 127], Int8Array.of(-128, 127)],
  ['INT16', [-32768, 32767], Int16Array.of(-32768, 32767)],
  ['INT32', [-2147483648, 2147483647], Int32Array.of(-2147483648, 2147483647)],
  ['INT64', [-5, 1.0], BigInt64Array.of(-5n, 1n)],
  ['FP16', [1, -2], Uint16Array.of(0x3c00, 0xc000)],
  ['BF16', [1, -2], Uint16Array.of(0x3f80, 0xc000)],
  ['FP32', [0.1, 3.4028235677973362e38], Float32Array.of(0.1, 3.4028234663852886e38)],
  ['FP64', [0.1, -1e300], Float64Array.of(0.1, -1e300)],
  ['BYTES', ['é\u0000', ''], [Buffer.from('é\u0000'), Buffer.from('')]],
] as const)
  test(`values of ${datatype} are read from JSON`, () => {
    assert.deepEqual(
      readX({ datatype, shape: [2], data: values }),
      new Tensor(datatype, [2], data as Uint8Array),
    );
  });

test('64-bit integers are read with all their digits', () => {
  const text = (datatype: string, data: string): string =>
    `{"inputs":[{"name":"x","datatype":"${datatype}","shape":[2],"data":[${data}]}]}`;
  const ints = readText(text('INT64', '-9223372036854775808,9223372036854775807')).inputs['x'];
  assert.deepEqual(ints?.data, BigInt64Array.of(-(2n ** 63n), 2n ** 63n - 1n));
  const uints = readText(text('UINT64', '18446744073709551615,9007199254740993')).inputs['x'];
  assert.deepEqual(uints?.data, BigUint64Array.of(2n ** 64n - 1n, 2n ** 53n + 1n));
});

test('NaN and infinities are Triton’s words', () => {
  const { inputs } = readText(
    '{"inputs":[{"name":"x","datatype":"FP32","shape":[3],"data":[NaN,Infinity,-Infinity]}]}',
  );
  assert.deepEqual(inputs['x']?.data, Float32Array.of(NaN, Infinity, -Infinity));
});

for (const [what, shape, data, expected] of [
  ['flat', [2, 3], [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]],
  ['nested', [2, 3], [[1, 2, 3], [4, 5, 6]], [1, 2, 3, 4, 5, 6]], // prettier-ignore
  ['nested in three', [2, 1, 2], [[[1, 2]], [[3, 4]]], [1, 2, 3, 4]],
  ['without a dimension', [], [5], [5]],
  ['empty and flat', [0, 3], [], []],
  ['empty and nested', [2, 0], [[], []], []],
] as const)
  test(`data that is ${what} is read`, () =>
    assert.deepEqual([...(readX({ datatype: 'FP32', shape, data }).data as Float32Array)], expected));

for (const [what, fields, message] of [
  [
    '256 in UINT8',
    { datatype: 'UINT8', shape: [2], data: [1, 256] },
    /^Input "x": element 1 is 256; UINT8 has whole numbers from 0 to 255\.$/,
  ],
  [
    'a negative number in UINT64',
    { datatype: 'UINT64', shape: [1], data: [-1] },
    /element 0 is -1; UINT64 has whole numbers from 0 to 18446744073709551615/,
  ],
  [
    '2^63 in INT64',
    { datatype: 'INT64', shape: [1], data: [2 ** 63] },
    /element 0 is 9223372036854776000; INT64 has whole numbers from -9223372036854775808/,
  ],
  [
    'a fraction in INT32',
    { datatype: 'INT32', shape: [1], data: [1.5] },
    /element 0 is 1\.5; INT32 has whole numbers/,
  ],
  [
    'a fraction in INT64',
    { datatype: 'INT64', shape: [1], data: [0.5] },
    /element 0 is 0\.5; INT64 has whole numbers/,
  ],
  [
    'text in FP32',
    { datatype: 'FP32', shape: [1], data: ['1'] },
    /element 0 is "1"; FP32 has numbers up to 3\.4028235e\+38\.$/,
  ],
  [
    'null in FP64',
    { datatype: 'FP64', shape: [1], data: [null] },
    /element 0 is null; FP64 has numbers up to 1\.7976931348623157e\+308\.$/,
  ],
  [
    '1e39 in FP32',
    { datatype: 'FP32', shape: [2], data: [1, 1e39] },
    /element 1 is 1e\+39; FP32 has numbers/,
  ],
  [
    'the least that FP32 rounds to an infinity',
    { datatype: 'FP32', shape: [1], data: [-3.4028235677973366e38] },
    /FP32 has numbers/,
  ],
  [
    '70000 in FP16',
    { datatype: 'FP16', shape: [1], data: [-65520] },
    /is -65520; FP16 has numbers up to 65504\.$/,
  ],
  [
    '2^128 in BF16',
    { datatype: 'BF16', shape: [1], data: [2 ** 128] },
    /BF16 has numbers up to 3\.3895314e\+38/,
  ],
  [
    'a number in BOOL',
    { datatype: 'BOOL', shape: [1], data: [1] },
    /element 0 is 1; BOOL has true or false\.$/,
  ],
  ['a number in BYTES', { datatype: 'BYTES', shape: [1], data: [1] }, /element 0 is 1; BYTES has texts\.$/],
  [
    'half a surrogate pair in BYTES',
    { datatype: 'BYTES', shape: [1], data: ['\ud800'] },
    /element 0 is "\\ud800"; BYTES has texts/,
  ],
  [
    'a list in flat data',
    { datatype: 'FP32', shape: [2], data: [1, [2]] },
    /element 1 is \[2\]; FP32 has numbers/,
  ],
  [
    'too few elements',
    { datatype: 'FP32', shape: [2, 3], data: [1, 2, 3] },
    /the shape \[2, 3\] has 6 elements, but data has 3\.$/,
  ],
  ['ragged lists', { datatype: 'FP32', shape: [2, 2], data: [[1, 2], [3]] }, /a list in dimension 1 of data has 1 items; the shape \[2, 2\] wants 2\.$/], // prettier-ignore
  [
    'a number beside lists',
    { datatype: 'FP32', shape: [2, 1], data: [[1], 2] },
    /not nested like the shape \[2, 1\]: it has 2 beside lists/,
  ],
  [
    'lists nested too deeply',
    { datatype: 'FP32', shape: [1, 1], data: [[[1]]] },
    /element 0 is \[1\]; FP32 has numbers/,
  ],
  [
    'lists of which one is nested less',
    { datatype: 'FP32', shape: [1, 1, 1], data: [[1]] },
    /not nested like the shape/,
  ],
  [
    'a huge shape of little data',
    { datatype: 'FP64', shape: [1, 2 ** 50], data: [[]] },
    /has 0 items; the shape/,
  ],
  ['a negative dimension', { datatype: 'FP32', shape: [-1], data: [1] }, /whole numbers from 0, not -1/],
  [
    'a product that overflows',
    { datatype: 'FP32', shape: [2 ** 33, 2 ** 33], data: [] },
    /more elements than can be counted/,
  ],
  ['data that is no list', { datatype: 'FP32', shape: [1], data: 5 }, /data must be a list, not 5\.$/],
  ['no data', { datatype: 'FP32', shape: [1] }, /^Input "x": it has no data\.$/],
  [
    'an unknown datatype',
    { datatype: 'fp32', shape: [1], data: [1] },
    /"fp32" is not a datatype; there are BOOL/,
  ],
  [
    'parameters of another kind',
    { datatype: 'FP32', shape: [1], data: [1], parameters: [] },
    /parameters must be an object, not a list/,
  ],
  [
    'shared memory',
    { datatype: 'FP32', shape: [1], parameters: { shared_memory_region: 'r' } },
    /shared memory is not supported/,
  ],
  [
    'a size without the header',
    { datatype: 'FP32', shape: [1], ...sized(4) },
    /needs the header Inference-Header-Content-Length/,
  ],
  [
    'data and a size',
    { datatype: 'FP32', shape: [1], data: [1], ...sized(4) },
    /it has both data and binary_data_size/,
  ],
] as const)
  test(`an input with ${what} is refused by name`, () => {
    assert.throws(() => readX(fields), serveError('SERVE_BAD_BODY', message));
    assert.throws(() => readX(fields), /^ServeError: Input "x": /);
  });

const DEEP = '['.repeat(100_000) + ']'.repeat(100_000);

const X = { name: 'x', datatype: 'FP32', shape: [1], data: [1] };

for (const [what, request, message] of [
  ['is a list', [], /^The body must be an object with "inputs", not a list\.$/],
  ['is null', null, /must be an object with "inputs", not null/],
  ['has no inputs', {}, /must have "inputs", a list of tensors, not undefined/],
  [
    'has an input without a name',
    { inputs: [{ ...X, name: undefined }] },
    /^Input 0 must have a "name" that is text, not undefined\.$/,
  ],
  [
    'has an input that is no object',
    { inputs: [X, 5] },
    /^Input 1 must be an object with a "name", not 5\.$/,
  ],
  ['has an input twice', { inputs: [X, X] }, /^Input "x" is there twice\.$/],
  [
    'has an output twice',
    { inputs: [X], outputs: [{ name: 'a' }, { name: 'a' }] },
    /^Output "a" is there twice\.$/,
  ],
  ['has outputs of another kind', { inputs: [X], outputs: 'a' }, /"outputs" must be a list, not text/],
  ['has a number as its id', { inputs: [X], id: 5 }, /"id" must be text, not 5/],
  [
    'has parameters of another kind',
    { inputs: [X], parameters: 5 },
    /The request's parameters must be an object, not 5/,
  ],
  ['has a reserved parameter', { inputs: [X], parameters: { triton_x: 1 } }, /"triton_x" is reserved/],
  [
    'is of a sequence',
    { inputs: [X], parameters: { sequence_id: 42, sequence_start: true, sequence_end: false } },
    /^The parameter sequence_id is 42, but this server has no sequences: each call stands alone\./,
  ],
  [
    'has a list as a parameter',
    { inputs: [X], parameters: { a: [] } },
    /The parameter "a" must be text, a number, true or false, not a list/,
  ],
  [
    'has a priority that is text',
    { inputs: [X], parameters: { priority: '1' } },
    /The parameter priority must be a whole number from 0, not "1"/,
  ],
  [
    'has a negative priority',
    { inputs: [X], parameters: { priority: -1 } },
    /The parameter priority must be a whole number from 0, not -1/,
  ],
  [
    'has half a timeout',
    { inputs: [X], parameters: { timeout: 0.5 } },
    /timeout must be a whole number from 0, not 0\.5/,
  ],
  [
    'has a switch that is text',
    { inputs: [X], parameters: { binary_data_output: 'yes' } },
    /binary_data_output must be true or false, not "yes"/,
  ],
  [
    'has a switch of an output that is 1',
    { inputs: [X], outputs: [{ name: 'a', parameters: { binary_data: 1 } }] },
    /^Output "a": binary_data must be true or false, not 1\.$/,
  ],
  [
    'asks for a classification',
    { inputs: [X], outputs: [{ name: 'a', parameters: { classification: 3 } }] },
    /^Output "a": classification is not supported/,
  ],
] as const)
  test(`a request that ${what} is refused`, () => {
    assert.throws(() => read(request), serveError('SERVE_BAD_BODY', message));
  });

for (const text of ['', '{', '{"inputs":[}', '['.repeat(100_000), `{"a":${'['.repeat(100_000)}NaN`])
  test(`the body ${JSON.stringify(text.slice(0, 20))} is refused as JSON`, () => {
    assert.throws(() => readText(text), serveError('SERVE_BAD_BODY', /^The body is not valid JSON: /));
  });

for (const [what, datatype, shape, data, message] of [
  [
    'data',
    'FP32',
    '[1]',
    DEEP,
    /^Input "x": element 0 is \[a list\]; FP32 has numbers up to 3\.4028235e\+38\.$/,
  ],
  ['data of INT64', 'INT64', '[1,1]', DEEP, /^Input "x": element 0 is \[a list\]; INT64 has/],
  ['a shape', 'FP32', DEEP, '[]', /^Input "x": the shape must have whole numbers from 0, not \[a list\]\.$/],
  [
    'data beside NaN',
    'FP32',
    '[1]',
    `[NaN,${DEEP}]`,
    /^The body is not valid JSON: it is nested deeper than 64 levels\.$/,
  ],
] as const)
  test(`${what} of 100,000 brackets is refused`, () => {
    const text = `{"inputs":[{"name":"x","datatype":"${datatype}","shape":${shape},"data":${data}}]}`;
    assert.throws(() => readText(text), serveError('SERVE_BAD_BODY', message));
  });

test('a shape without elements cannot ask for a million rows and more', () => {
  const empty = (...shape: number[]): unknown => read({ inputs: [{ ...X, shape, data: [] }] });
  assert.doesNotThrow(() => empty(16, 32, 0, 128));
  assert.doesNotThrow(() => empty(2 ** 20, 0));
  assert.throws(
    () => empty(2 ** 20 + 1, 0),
    serveError(
      'SERVE_BAD_BODY',
      /^Input "x": the shape \[1048577, 0\] has no elements; the product of its other sizes may be 1048576 at most\.$/,
    ),
  );
});

test('any bytes are a request or SERVE_BAD_BODY', () => {
  const length = fc.option(fc.nat(60));
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 50 }), length, fc.json(), (bytes, jsonBytes, json) => {
      for (const body of [Buffer.from(bytes), Buffer.from(json)])
        try {
          readRequest(body, jsonBytes, null);
        } catch (error) {
          serveError('SERVE_BAD_BODY', /./)(error);
        }
    }),
  );
});

test('the id, the wanted outputs and the app’s own parameters are kept; priority and timeout are not', () => {
  const parameters = { priority: 1, timeout: 1000, seed: 5, flag: true, text: 'a' };
  const { id, wanted, params } = read({
    id: 'i1',
    inputs: [X],
    outputs: [{ name: 'b' }, { name: 'a' }],
    parameters,
  });
  assert.equal(id, 'i1');
  assert.deepEqual([...(wanted.named ?? [])], [['b', false], ['a', false]]); // prettier-ignore
  assert.deepEqual(params, { seed: 5, flag: true, text: 'a' });
});

test('null stands for a field that is left out', () => {
  const { id, wanted, params } = read({
    id: null,
    inputs: [{ ...X, parameters: null }],
    outputs: null,
    parameters: null,
  });
  assert.deepEqual({ id, wanted, params }, { id: '', wanted: { named: null, binary: false }, params: {} });
});

test('a large parameter has all its digits', () => {
  const { params } = readText('{"inputs":[],"parameters":{"seed":18446744073709551615}}');
  assert.deepEqual(params, { seed: 2n ** 64n - 1n });
});

for (const [all, own, isBinary] of [
  [undefined, undefined, false],
  [true, undefined, true],
  [false, true, true],
  [true, false, false],
  [undefined, true, true],
] as const)
  test(`binary_data_output ${all} and binary_data ${own}: ${isBinary ? 'bytes' : 'JSON'}`, () => {
    const outputs = [{ name: 'a', parameters: { binary_data: own } }];
    const { wanted } = read({ inputs: [X], outputs, parameters: { binary_data_output: all } });
    assert.equal(wanted.named?.get('a'), isBinary);
  });

test('no outputs, or an empty list, asks for all of them', () => {
  const parameters = { binary_data_output: true };
  for (const outputs of [undefined, []])
    assert.deepEqual(read({ inputs: [X], outputs, parameters }).wanted, { named: null, binary: true });
});

test('an input named like a property of every object is an input', () => {
  const { inputs } = readText('{"inputs":[{"name":"__proto__","datatype":"UINT8","shape":[1],"data":[1]}]}');
  assert.deepEqual(Object.keys(inputs), ['__proto__']);
});

test('tensors of every datatype are read from bytes, in the order of the request, beside JSON', () => {
  const bits = Buffer.from([0, 0, 128, 63, 1, 2, 3, 4]);
  const text = Buffer.from([2, 0, 0, 0, 0xff, 0, 0, 0, 0, 0]);
  const inputs = [
    { name: 'a', datatype: 'FP32', shape: [2], ...sized(8) },
    X,
    { name: 'b', datatype: 'BYTES', shape: [1, 2], ...sized(10) },
    { name: 'c', datatype: 'BOOL', shape: [], ...sized(1) },
  ];
  const { inputs: read } = readBinary({ inputs }, bits, text, Uint8Array.of(1));
  assert.deepEqual(read['a']?.data, new Float32Array(Uint8Array.from(bits).buffer));
  assert.deepEqual(read['x']?.data, Float32Array.of(1));
  assert.deepEqual(read['b']?.data, [Buffer.from([0xff, 0]), Buffer.alloc(0)]);
  assert.deepEqual(read['c']?.data, Uint8Array.of(1));
});

for (const [what, fields, raw, message] of [
  [
    'fewer bytes than its shape',
    { datatype: 'FP32', shape: [2], ...sized(4) },
    4,
    /FP32 of the shape \[2\] takes 8 bytes, but binary_data_size is 4/,
  ],
  [
    'more bytes than the body',
    { datatype: 'FP32', shape: [2], ...sized(8) },
    7,
    /binary_data_size is 8, but only 7 bytes of the body are left/,
  ],
  [
    'a negative size',
    { datatype: 'FP32', shape: [2], ...sized(-8) },
    8,
    /must be a whole number of bytes, not -8/,
  ],
  [
    'half a size',
    { datatype: 'FP32', shape: [2], ...sized(0.5) },
    8,
    /must be a whole number of bytes, not 0\.5/,
  ],
  [
    'a size as text',
    { datatype: 'FP32', shape: [2], ...sized('8') },
    8,
    /must be a whole number of bytes, not "8"/,
  ],
  [
    'a huge shape',
    { datatype: 'BYTES', shape: [2 ** 50], ...sized(8) },
    8,
    /its 8 bytes end before the elements of the shape/,
  ],
  [
    'a length beyond its bytes',
    { datatype: 'BYTES', shape: [1], ...sized(5) },
    [2, 0, 0, 0, 1],
    /end before the elements of the shape \[1\] do \(element 0\)/,
  ],
  [
    'a length cut short',
    { datatype: 'BYTES', shape: [2], ...sized(8) },
    [1, 0, 0, 0, 1, 0, 0, 0],
    /\(element 1\)|end before/,
  ],
  [
    'more texts than its shape',
    { datatype: 'BYTES', shape: [1], ...sized(8) },
    8,
    /have more than the 1 elements of the shape \[1\]/,
  ],
  [
    'a byte that is no BOOL',
    { datatype: 'BOOL', shape: [2], ...sized(2) },
    [1, 2],
    /element 1 is the byte 2; BOOL has 0 or 1/,
  ],
] as const)
  test(`a binary input with ${what} is refused by name`, () => {
    const bytes = typeof raw === 'number' ? Buffer.alloc(raw) : Buffer.from(raw);
    const request = { inputs: [{ name: 'x', ...fields }] };
    assert.throws(() => readBinary(request, bytes), serveError('SERVE_BAD_BODY', message));
    assert.throws(() => readBinary(request, bytes), /^ServeError: Input "x": /);
  });

test('bytes that no input has, and a length beyond the body, are refused', () => {
  const left = serveError(
    'SERVE_BAD_BODY',
    /^The body has 3 more bytes than its inputs' binary_data_size\.$/,
  );
  assert.throws(() => readBinary({ inputs: [X] }, Buffer.alloc(3)), left);
  const { body } = binary({ inputs: [X] });
  const beyond = serveError(
    'SERVE_BAD_BODY',
    /^Inference-Header-Content-Length is 1000, but the body has \d+ bytes\.$/,
  );
  assert.throws(() => readRequest(body, 1000, null), beyond);
});

/** A large request of FP32 whose tensor begins so many bytes after a multiple of four in its memory. */
function largeRequest(shift: number): { tensor: Tensor; body: Buffer } {
  const raw = Buffer.alloc(400_000, 7);
  const request = {
    id: '',
    inputs: [{ name: 'x', datatype: 'FP32', shape: [100_000], ...sized(raw.length) }],
  };
  const spare = (4 + shift - (JSON.stringify(request).length % 4)) % 4;
  const { body, jsonBytes } = binary({ ...request, id: 'i'.repeat(spare) }, raw);
  const own = Buffer.from(Uint8Array.from(body).buffer);
  assert.equal(jsonBytes % 4, shift);
  return { tensor: readRequest(own, jsonBytes, null).inputs['x'] ?? assert.fail(), body: own };
}

test('a large tensor is read where it lies if it is aligned there, otherwise from a copy', () => {
  for (const shift of [0, 1, 2, 3]) {
    const { tensor, body } = largeRequest(shift);
    const data = tensor.data as Float32Array;
    assert.equal(data.buffer === body.buffer, shift === 0);
    assert.equal(Buffer.from(data.buffer, data.byteOffset, 4).toString('hex'), '07070707');
  }
});

test('a small tensor keeps no read buffer alive', () => {
  const { body, jsonBytes } = binary(
    { inputs: [{ name: 'x', datatype: 'BYTES', shape: [1], ...sized(5) }] },
    Buffer.from([1, 0, 0, 0, 65]),
  );
  const [item] = readRequest(body, jsonBytes, null).inputs['x']?.data as Buffer[];
  assert.notEqual(item?.buffer, body.buffer);
  assert.equal(item?.toString(), 'A');
});

for (const [what, input, bytes, expected] of [
  ['of which one dimension is free', spec('FP32', [-1, 2]), 16, { shape: [2, 2] }],
  ['of which two are free', spec('FP32', [-1, -1]), 16, { shape: [1, 4] }],
  ['of fixed shape', spec('INT8', [3]), 3, { shape: [3] }],
  ['of BYTES', spec('BYTES', [-1]), 3, { shape: [1] }],
  ['of BYTES that are empty', spec('BYTES', [1]), 0, { shape: [1] }],
  ['that is empty', spec('FP32', [-1]), 0, { shape: [0] }],
  [
    'of which the bytes are too many',
    spec('INT8', [3]),
    4,
    /^Input "x": 4 bytes are not INT8 of the shape \[3\]\.$/,
  ],
  [
    'of which the bytes are half an element',
    spec('FP32', [-1]),
    6,
    /6 bytes are not FP32 of the shape \[-1\]/,
  ],
] as const)
  test(`a whole body is the one input ${what}`, () => {
    const readRaw = (): InferRequest =>
      readRequest(Buffer.alloc(bytes, 0), 0, { inputs: [input], outputs: [] });
    if (expected instanceof RegExp)
      return void assert.throws(readRaw, serveError('SERVE_BAD_BODY', expected));
    const { inputs, wanted } = readRaw();
    assert.deepEqual(inputs['x']?.shape, expected.shape);
    assert.deepEqual(wanted, { named: null, binary: true });
  });

test('a whole body as input needs a model that has one', () => {
  for (const [signature, message] of [
    [null, /but this app has no signature\.$/],
    [{ inputs: [], outputs: [] }, /but this model has 0\.$/],
    [{ inputs: [spec('FP32', [1]), spec('FP32', [1])], outputs: [] }, /but this model has 2\.$/],
  ] as const)
    assert.throws(() => readRequest(Buffer.alloc(4), 0, signature), serveError('SERVE_BAD_BODY', message));
});

test('the generator of tensors makes all datatypes', () => {
  const seen = new Set(fc.sample(anyTensor(), 500).map(({ datatype }) => datatype));
  assert.equal(seen.size, DATATYPES.length);
});
