/** `banana-serve ./model.onnx`: models without code, by every path and form of body that a model has. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pack, unpack, Unpackr } from 'msgpackr';
import { ask, errorOf } from '../helpers/ask.js';
import { identity, writeOnnx, type OnnxModel } from '../helpers/onnx-model.js';
import { startManagedHere } from '../helpers/managed-command.js';
import { startHere } from '../helpers/here.js';
import { ROOT, call, type Server } from '../helpers/server.js';
import { appFolder } from '../worker/app-folder.js';

const LIMIT = { timeout: 240_000 };

/** `sum = a + b`, for any number of rows. */
const SUM: OnnxModel = {
  inputs: ['a', 'b'].map((name) => ({ name, type: 'FP32', shape: ['batch', 2] })),
  outputs: [{ name: 'sum', type: 'FP32', shape: ['batch', 2] }],
  nodes: [{ op: 'Add', inputs: ['a', 'b'], outputs: ['sum'] }],
};

/** A list of zeros as long as `table[at]`: it fails for an index beyond the table, and for one of more than the memory. */
const TABLE: OnnxModel = {
  inputs: [{ name: 'at', type: 'INT64', shape: ['count'] }],
  outputs: [{ name: 'y', type: 'FP32', shape: ['length'] }],
  nodes: [
    { op: 'Gather', inputs: ['table', 'at'], outputs: ['length'] },
    { op: 'ConstantOfShape', inputs: ['length'], outputs: ['y'] },
  ],
  weights: [
    { name: 'table', type: 'INT64', shape: [2], bytes: Buffer.from(BigInt64Array.of(2n, 10n ** 14n).buffer) },
  ],
};

interface DigitsTest {
  readonly rows: readonly { readonly pixels: readonly number[]; readonly probabilities: readonly number[] }[];
}

describe('banana-serve ./m.onnx', LIMIT, () => {
  const folder = appFolder({ after: (undo) => after(undo) }, {});
  let server: Server;
  before(async () => {
    writeOnnx(join(folder, 'm.onnx'), SUM);
    for (const type of ['FP32', 'FP16', 'BOOL', 'INT64', 'BYTES', 'UINT8'] as const)
      writeOnnx(join(folder, `${type}.onnx`), identity(type));
    writeOnnx(join(folder, 'table.onnx'), TABLE);
    const others = ['FP32', 'FP16', 'BOOL', 'INT64', 'BYTES', 'UINT8', 'table'].flatMap((name) => [
      '--model',
      `${name}=${name}.onnx`,
    ]);
    server = await startHere('./m.onnx', { cwd: folder, args: others });
  });
  after(async () => {
    await server.stop();
  });

  const ROW = { a: [1, 2], b: [10, 20] };

  test('answers with the outputs by name, for rows and for a row', async () => {
    const rows = {
      a: [
        [1, 2],
        [3, 4],
      ],
      b: [
        [10, 20],
        [30, 40],
      ],
    };
    assert.deepEqual((await ask(server, rows)).json(), {
      sum: [
        [11, 22],
        [33, 44],
      ],
    });
    assert.deepEqual((await ask(server, ROW)).json(), { sum: [11, 22] });
    assert.deepEqual((await ask(server, { a: [[1, 2]], b: [[10, 20]] })).json(), { sum: [[11, 22]] });
  });

  for (const path of [
    '/predictions/m',
    '/predictions/m/1',
    '/models/m/invoke',
    '/m/predict',
    '/invocations?model_name=m',
    '/models/m/',
  ])
    test(`answers at ${path}`, async () => {
      const answer = await call(server.url + path, JSON.stringify(ROW));
      assert.deepEqual([answer.status, answer.json()], [200, { sum: [11, 22] }]);
    });

  test('answers at the paths of the gateway', async () => {
    const body = { apiKey: 'any', modelKey: 'm', modelInputs: ROW };
    const answer = await call(`${server.url}/start/v4/`, JSON.stringify(body));
    const { modelOutputs } = answer.json<{ modelOutputs: unknown[] }>();
    assert.deepEqual(modelOutputs, [{ sum: [11, 22] }]);
  });

  test('takes MessagePack, also with bytes of elements, and gives it', async () => {
    const asBytes = (...values: number[]): Buffer => Buffer.from(new Float32Array(values).buffer);
    for (const body of [ROW, { a: asBytes(1, 2), b: asBytes(10, 20) }]) {
      const type = 'application/msgpack';
      const response = await fetch(server.url, {
        method: 'POST',
        body: pack(body),
        headers: { 'content-type': type, accept: type },
      });
      const rows = { sum: body === ROW ? [11, 22] : [[11, 22]] };
      assert.deepEqual(unpack(Buffer.from(await response.arrayBuffer())), rows);
    }
  });

  test('has 64-bit integers exactly in MessagePack, and refuses them in JSON by name', async () => {
    const [body, type] = [pack([2n ** 63n - 1n, -(2n ** 63n)]), 'application/msgpack'];
    const send = (accept: string, path = '/models/INT64/'): Promise<Response> =>
      fetch(server.url + path, {
        method: 'POST',
        body,
        headers: { 'content-type': type, accept },
      });
    const exact = new Unpackr({ int64AsType: 'bigint', mapsAsObjects: true, useRecords: false });
    const answer = Buffer.from(await (await send(type)).arrayBuffer());
    assert.deepEqual(exact.unpack(answer), { y: [2n ** 63n - 1n, -(2n ** 63n)] });
    const refused = await send('application/json');
    assert.equal(refused.status, 500);
    assert.match(await refused.text(), /SERVE_OUTPUT_INVALID.*y\[0\]/);
    // Multi Model Server has 503 for an exception of a handler, and clients repeat that.
    assert.equal((await send('application/json', '/predictions/INT64')).status, 500);
  });

  const ALONE: readonly (readonly [model: string, sent: string, got: string])[] = [
    ['FP32', '[[1,2],[3,4]]', '{"y":[[1,2],[3,4]]}'],
    ['FP32', '[1.5,-2]', '{"y":[1.5,-2]}'],
    ['FP32', '{"x":[]}', '{"y":[]}'],
    ['FP16', '[1.5,-65504]', '{"y":[1.5,-65504]}'],
    ['BOOL', '[true,false]', '{"y":[true,false]}'],
    ['INT64', '[9007199254740991,-1]', '{"y":[9007199254740991,-1]}'],
    ['BYTES', '["é",""]', '{"y":["é",""]}'],
    ['UINT8', '[[0,255]]', '{"y":[[0,255]]}'],
    ['UINT8', '[[]]', ''],
  ];
  for (const [model, sent, got] of ALONE)
    test(`a model of one input ${got === '' ? 'refuses' : 'takes'} ${sent} as ${model}`, async () => {
      const answer = await call(`${server.url}/models/${model}/`, sent);
      if (got === '') assert.equal(answer.status, 400);
      else assert.deepEqual([answer.status, answer.text], [200, got]);
    });

  test('takes the bytes of its one input, and gives MessagePack for them', async () => {
    const body = new Uint8Array([7, 8, 9, 10]);
    const answer = await call(`${server.url}/models/UINT8/`, body, {
      'content-type': 'application/octet-stream',
    });
    assert.deepEqual(answer.json(), {
      y: [
        [7, 8],
        [9, 10],
      ],
    });
  });

  const BAD: readonly (readonly [path: string, body: string, message: RegExp])[] = [
    [
      '/',
      '{"a": [[1, 2]], "b": [[1]]}',
      /^Input "b": the model wants FP32 of the shape \[-1, 2\], but got lists of the shape \[1, 1\]\.$/,
    ],
    ['/', '', /^The body is empty; the model wants a value for each input: \{"a":…,"b":…\}\.$/],
    [
      '/models/INT64/',
      '[9007199254740993, 1]',
      /^Input "x": element 0 is 9007199254740992; INT64 has whole numbers/,
    ],
    [
      '/models/BYTES/',
      '["a\\u0000b", ""]',
      /^Input "x": element 0 has a NUL, and onnxruntime would cut it there\.$/,
    ],
    ['/models/BYTES/', '["\\ud800", ""]', /^Input "x": element 0 is /],
    ['/models/FP16/', '[1, 70000]', /^Input "x": element 1 is 70000; FP16 has numbers up to 65504\.$/],
    ['/models/FP32/', '[1, 1e400]', /^Input "x": element 1 is beyond the largest number\.$/],
  ];
  for (const [path, body, message] of BAD)
    test(`${body || 'an empty body'} to ${path} is 400, which names the tensor`, async () => {
      const answer = await call(server.url + path, body);
      assert.deepEqual([answer.status, errorOf(answer).code], [400, 'SERVE_BAD_BODY']);
      assert.match(errorOf(answer).message, message);
    });

  for (const [index, status, text] of [
    [99_999, 400, /: indices element out of data bounds, idx=99999/],
    [1, 500, /: Failed to allocate memory for .* 400000000000000/],
  ] as const)
    test(`a run that fails for the index ${index} is ${status} by every path, in the words of onnxruntime`, async () => {
      const at = { name: 'at', datatype: 'INT64', shape: [1], data: [index] };
      for (const [path, body] of [
        ['/models/table/', { at: [index] }],
        ['/v2/models/table/infer', { inputs: [at] }],
        ['/predictions/table', { at: [index] }],
      ] as const) {
        const answer = await call(server.url + path, JSON.stringify(body));
        // Multi Model Server has a status and a text for a lack of memory.
        const isItsOwn = status === 500 && path === '/predictions/table';
        assert.equal(answer.status, isItsOwn ? 507 : status, answer.text);
        assert.match(answer.text, isItsOwn ? /Out of resources/ : text);
        assert.doesNotMatch(answer.text, /onnxruntime_src|\.cc:/);
      }
    });
});

test(
  'a real model answers as the framework that it was trained in, one by one and together',
  LIMIT,
  async (t) => {
    const { rows } = JSON.parse(readFileSync(`${ROOT}examples/digits/test.json`, 'utf8')) as DigitsTest;
    const server = await startHere('examples/digits/digits.onnx', { t, cwd: ROOT });
    const image = ({ pixels }: DigitsTest['rows'][number]): unknown => [
      Array.from({ length: 8 }, (_, y) => pixels.slice(8 * y, 8 * y + 8).map((pixel) => pixel / 16)),
    ];
    const answers = await Promise.all(rows.slice(0, 40).map((row) => ask(server, { image: image(row) })));
    const all = (await ask(server, rows.map(image))).json<{ probabilities: number[][] }>();
    for (const [i, { probabilities }] of rows.entries()) {
      const alone = answers[i]?.json<{ probabilities: number[] }>().probabilities ?? [];
      for (const got of [...(i < 40 ? [alone] : []), all.probabilities[i] as number[]])
        for (const [digit, wanted] of probabilities.entries())
          assert.ok(Math.abs((got[digit] as number) - wanted) < 1e-4, `row ${i}: ${String(got)}`);
    }
    await server.stop();
  },
);

test(
  'no row of one caller reaches another, though an example had as many rows out as in',
  LIMIT,
  async (t) => {
    /** A row of `output` for each number of `images` that is not 0. */
    const detector: OnnxModel = {
      inputs: [{ name: 'images', type: 'FP32', shape: ['batch', 4] }],
      outputs: [{ name: 'output', type: 'INT64', shape: ['num_dets', 2] }],
      nodes: [
        { op: 'NonZero', inputs: ['images'], outputs: ['places'] },
        { op: 'Transpose', inputs: ['places'], outputs: ['output'], attributes: { perm: [1, 0] } },
      ],
    };
    const folder = appFolder(t, { 'detector.example.json': '[[0, 1, 0, 0]]' });
    const path = writeOnnx(join(folder, 'detector.onnx'), detector);
    // Calls that may be joined would wait for each other.
    const server = await startHere(path, { t, args: ['--max-batch-delay', '500ms'] });
    await server.until(({ state }) => state === 'ready');
    const [two, none] = await Promise.all([ask(server, [[0, 1, 1, 0]]), ask(server, [[0, 0, 0, 0]])]);
    assert.deepEqual(two.json(), {
      output: [
        [0, 1],
        [0, 2],
      ],
    });
    assert.deepEqual(none.json(), { output: [] });
    await server.stop();
  },
);

describe('other ways to name a model', LIMIT, () => {
  test('a folder without code that has one', async (t) => {
    const folder = appFolder(t, { 'net/labels.json': '{}' });
    writeOnnx(join(folder, 'net/m.onnx'), identity('FP32'));
    const server = await startHere('./net', { t, cwd: folder });
    assert.deepEqual((await ask(server, [1, 2])).json(), { y: [1, 2] });
    await server.stop();
  });

  test('a store, with folders as Triton has them, and weights that are data of a handler', async (t) => {
    const store = appFolder(t, {
      'sum/config.pbtxt': 'max_batch_size: 8',
      'handled/handled_handler.mjs':
        'export const handle = (data) => data && data.map(() => "the handler ran");',
    });
    for (const version of ['1', '2']) mkdirSync(join(store, 'sum', version));
    writeOnnx(join(store, 'sum/1/model.onnx'), identity('FP32'));
    writeOnnx(join(store, 'sum/2/model.onnx'), SUM);
    writeOnnx(join(store, 'one.onnx'), TABLE);
    writeOnnx(join(store, 'handled/handled.onnx'), identity('FP32'));
    const args = ['--model-store', store, '--models', 'all', '--ping', 'health'];
    const server = await startHere(null, { t, cwd: ROOT, args: [...args, '--management-port', '0'] });
    await server.until(({ state }) => state === 'ready');
    const infer = async (path: string, input: unknown): Promise<unknown> =>
      (await call(`${server.url}/predictions/${path}`, JSON.stringify(input))).json();
    const row = { a: [1, 2], b: [10, 20] };
    assert.deepEqual(await infer('sum', row), { sum: [11, 22] });
    assert.deepEqual(await infer('sum/2', row), { sum: [11, 22] });
    assert.deepEqual(await infer('sum/1', [1, 2]), { y: [1, 2] });
    assert.deepEqual(await infer('one', [0]), { y: [0, 0] });
    const handled = await call(`${server.url}/predictions/handled`, '{}');
    assert.equal(handled.text, 'the handler ran');
    const wrong = await call(`${server.url}/predictions/one`, '[7]');
    assert.deepEqual([wrong.status, wrong.json<{ type: string }>().type], [400, 'BadRequestException']);
    assert.match(wrong.text, /out of data bounds, idx=7/);
    assert.equal(server.stderr().split('sum/config.pbtxt is not read').length, 2, 'one line says so');
    await server.stop();
  });

  test('the management API registers all versions, and later those that are new', async (t) => {
    const store = appFolder(t, {});
    const addVersion = (version: string, model: OnnxModel): void => {
      mkdirSync(join(store, 'm', version), { recursive: true });
      writeOnnx(join(store, 'm', version, 'model.onnx'), model);
    };
    addVersion('1', identity('FP32'));
    addVersion('2', SUM);
    const { server, management } = await startManagedHere(t, { cwd: ROOT }, store);
    const register = 'POST /models?url=m&initial_workers=1&synchronous=true';
    assert.equal(await management.said(register), '200 Workers scaled');
    assert.deepEqual((await management.infer('m', { a: [1, 2], b: [3, 4] })).json(), { sum: [4, 6] });
    assert.match(await management.said('PUT /models/m/1?min_worker=1&synchronous=true'), /^200 /);
    assert.deepEqual((await management.infer('m/1', [1, 2])).json(), { y: [1, 2] });
    addVersion('3', identity('INT32'));
    assert.equal(await management.said(register), '200 Workers scaled');
    assert.deepEqual((await management.infer('m/3', [1, 2])).json(), { y: [1, 2] });
    const all = (await management.manage('GET /models/m/all')).json<{ modelVersion: string }[]>();
    assert.deepEqual(all.map(({ modelVersion }) => modelVersion).sort(), ['1', '2', '3']);
    assert.deepEqual((await management.infer('m', { a: [1, 2], b: [3, 4] })).json(), { sum: [4, 6] });
    await server.stop();
  });
});
