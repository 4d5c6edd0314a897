/** An app in Python as a function: arrays stay arrays on both sides, and all else is as for an app for Node. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Tensor, serve, supervise, type ModelFunction } from '../../index.js';
import { needs } from '../helpers/needs.js';
import { refusalOf, until } from '../helpers/functions.js';
import { ROOT } from '../helpers/server.js';

const TELLS = join(ROOT, 'test/fixtures/python-apps/tells.py');

type Tells = ModelFunction<{ inference: (input: Record<string, unknown>) => unknown }>;

describe('a function in Python', { timeout: 240_000, skip: needs('python3-numpy') }, () => {
  let tell: Tells;
  const lines: string[] = [];
  before(async () => {
    const prints = (line: string): unknown => lines.push(line);
    tell = await supervise(TELLS, { prints, python: '/usr/bin/python3' });
  });
  after(() => tell[Symbol.asyncDispose]());

  for (const [name, value] of Object.entries({
    'typed arrays': [new Float32Array([1.5, 2]), new BigInt64Array([-1n]), new Float64Array(0)],
    'a large typed array': new Float64Array(300_000).fill(0.5),
    'tensors of several dimensions': [
      new Tensor('FP32', [2, 1], new Float32Array([1, 2])),
      new Tensor('BOOL', [1], new Uint8Array([1])),
      new Tensor('BF16', [1], new Uint16Array([0x3f80])),
    ],
    bytes: new Uint8Array([1, 2, 255]),
    'numbers, with those that JSON has not': [1, -1, 2 ** 53 - 1, -(2 ** 40), 0.1, NaN, Infinity, 2n ** 63n],
    'text, lists, objects and null': { é: [true, null, { '': [] }] },
  }))
    test(`it gets and returns ${name} unchanged`, async () => {
      assert.deepStrictEqual(await tell({ act: 'echo', value }), value);
    });

  test('typed arrays are arrays of numpy, and a Uint8Array is bytes', async () => {
    const values = [
      new Float32Array(1),
      new Uint8Array(1),
      Buffer.alloc(1),
      new Tensor('INT64', [1, 1], new BigInt64Array(1)),
      new Tensor('UINT8', [1], new Uint8Array(1)),
      new Date(0),
      new Map([[1, 2]]),
      new Set([1]),
      undefined,
    ];
    assert.deepEqual(await tell({ act: 'kinds', values }), [
      'numpy.ndarray float32',
      'builtins.bytes',
      'builtins.bytes',
      'numpy.ndarray int64',
      'numpy.ndarray uint8',
      'datetime.datetime',
      'builtins.dict',
      'builtins.list',
      'builtins.NoneType',
    ]);
    assert.deepEqual(await tell({ act: 'double', array: new Float32Array([1.5]) }), new Float32Array([3]));
  });

  test('arrays of several dimensions are tensors, and a number of numpy is a number', async () => {
    assert.deepStrictEqual(await tell({ act: 'table' }), {
      rows: new Tensor('INT16', [2, 3], new Int16Array(6)),
      mean: 0.5,
      words: new Tensor('BYTES', [2], [new Uint8Array([97]), new Uint8Array([98])]),
    });
  });

  test('a value that cannot cross is named by its path, in the input and in the answer', async () => {
    const cycle: unknown[] = [];
    cycle.push(cycle);
    for (const [value, text] of [
      [{ list: [1, { run: () => {} }] }, 'input.value.list[1].run is a function.'],
      [new Map([['k', Promise.resolve()]]), 'input.value.k cannot: it is a Promise.'],
      [new Error('lost'), 'input.value cannot: it is an Error.'],
      [2n ** 64n, 'input.value is a bigint beyond 64 bits.'],
      [cycle, 'input is nested more than 128 levels deep, or contains itself.'],
    ] as const) {
      const error = await refusalOf(tell({ act: 'echo', value }));
      assert.deepEqual([error.code, error.begun], ['SERVE_BAD_BODY', false]);
      assert.ok(error.message.endsWith(text), error.message);
    }
    const error = await refusalOf(tell({ act: 'object' }));
    assert.deepEqual([error.code, error.begun], ['SERVE_OUTPUT_INVALID', true]);
    assert.match(error.message, /output\["deep"\]\[0\]\["run"\]/);
  });

  test("the app's exception is the cause, by its name, with its message and its traceback", async () => {
    const error = await refusalOf(tell({ act: 'raise', message: 'no text' }));
    assert.deepEqual([error.code, error.begun], ['SERVE_INFERENCE_FAILED', true]);
    const cause = error.cause as Error;
    assert.deepEqual([cause.name, cause.message], ['OcrError', 'no text']);
    assert.match(cause.stack ?? '', /tells\.py", line \d+, in inference/);
  });

  test('a generator is a stream that waits for its reader, and ends with it', async () => {
    const items: unknown[] = [];
    for await (const item of (await tell({ act: 'count', to: 3 })) as AsyncIterable<unknown>)
      items.push(item);
    assert.deepEqual(items, [1, 2, 3]);
    for await (const item of (await tell({ act: 'count' })) as AsyncIterable<unknown>) if (item === 4) break;
    await until(() => tell.status().inFlight === 0);
    await until(() => /left at \d+/.test(lines.at(-1) ?? ''));
    let last = 0;
    for await (const { at } of (await tell({ act: 'fill' })) as AsyncIterable<{ at: number }>)
      if ((last = at) === 100) break;
    assert.equal(last, 100);
  });

  test('a signal reaches the app, and frees the worker', async () => {
    const control = new AbortController();
    const refusal = refusalOf(tell({ act: 'sleep' }, { signal: control.signal }));
    await until(() => lines.includes('sleeping'));
    control.abort();
    assert.deepEqual([(await refusal).code, (await refusal).begun], ['SERVE_CANCELLED', true]);
    assert.equal(await tell({ act: 'echo', value: 1 }), 1);
  });

  test('onProgress gets what the app reports, and None is an answer without a hint', async () => {
    const told: unknown[] = [];
    const onProgress = (...report: unknown[]): unknown => told.push(report);
    assert.equal(await tell({ act: 'progress' }, { onProgress }), null);
    assert.deepEqual(told, [[0.5, 'half']]);
  });
});

describe('functions in Python', { timeout: 240_000, skip: needs('python3') }, () => {
  test('take calls together', async () => {
    const app = join(ROOT, 'test/fixtures/python-apps/counts-batches.py');
    const count = await supervise<{ inference: (input: number) => number }>(app, {
      batchSize: 8,
      prints: 'ignore',
    });
    const sizes = await Promise.all(Array.from({ length: 20 }, (_, i) => count(i)));
    assert.ok(Math.max(...sizes) > 1, sizes.join());
    await count.close();
  });

  test('an app of Potassium is its routes', async () => {
    const path = join(ROOT, 'test/fixtures/python-apps/potassium-default.py');
    const app = await supervise(path, { prints: 'ignore' });
    assert.deepEqual(await app.route('/greet')({ name: 'Ada' }), { out: 'hello Ada' });
    await app.close();
  });

  test('a custom service is refused by name', async () => {
    const app = join(ROOT, 'test/fixtures/python-apps/works-service.py');
    const error = await refusalOf(supervise(app, { prints: 'ignore' }));
    assert.deepEqual([error.code, error.begun], ['SERVE_APP_INVALID', false]);
    assert.match(error.message, /custom service of Multi Model Server/);
  });

  test('a server calls its models in Python in the same way', async () => {
    const server = await serve({ app: TELLS, host: '127.0.0.1', port: 0, logLevel: 'silent' });
    const value = { a: new Uint8Array([1]) };
    assert.deepStrictEqual(await server.call('tells', { act: 'echo', value }), value);
    await server.close();
  });
});
