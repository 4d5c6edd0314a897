/** Models through the real onnxruntime: batches, warm-up, what they leave out. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { Tensor } from '../../../../protocol/values/tensor.js';
import { WARM_UP } from '../../../../worker/adapters/loaded-app.js';
import { writeHintsTo } from '../../../../worker/process/hint-once.js';
import { leftOutText } from '../../../../worker/load/onnx/session-signature.js';
import { identity, writeOnnx, type OnnxModel } from '../../../helpers/onnx-model.js';
import { appFolder } from '../../../worker/app-folder.js';
import { loadModel, type LoadedModel, type Loading } from './load-model.js';

function load(t: TestContext, model: OnnxModel, loading: Loading = {}): Promise<LoadedModel> {
  return loadModel(writeOnnx(join(appFolder(t, {}), 'm.onnx'), model), loading);
}

test('a tensor that is a view into a larger body is read where it lies', async (t) => {
  const { inference } = await load(t, identity('FP32'));
  const body = new Float32Array([9, 1, 2, 9]);
  const x = new Tensor('FP32', [1, 2], body.subarray(1, 3));
  assert.deepEqual(await inference({ x }), { y: new Tensor('FP32', [1, 2], new Float32Array([1, 2])) });
});

for (const [declared, inGraph, shape] of [
  [null, [], undefined],
  [[], null, []],
] as const)
  test(`shapes are those of the model, ${JSON.stringify(declared)}, where an optimized graph runs`, async (t) => {
    const own = { ...identity('FP32', inGraph), nodes: [{ op: 'Neg', inputs: ['x'], outputs: ['y'] }] };
    const graph = writeOnnx(join(appFolder(t, {}), 'graph.onnx'), own);
    const { signature, inference } = await load(t, identity('FP32', declared), { graph });
    const specs = [...signature.inputs, ...signature.outputs];
    assert.deepEqual(
      specs.map((spec) => spec.shape),
      [shape, shape],
    );
    assert.deepEqual(await inference({ x: new Tensor('FP32', [], new Float32Array([2])) }), {
      y: new Tensor('FP32', [], new Float32Array([-2])),
    });
  });

/** `rows`: for each row, the rows of its run. */
const COUNTS_ROWS: OnnxModel = {
  inputs: [{ name: 'x', type: 'FP32', shape: ['batch', 'size'] }],
  outputs: [{ name: 'rows', type: 'INT64', shape: ['batch'] }],
  nodes: [
    { op: 'Shape', inputs: ['x'], outputs: ['n'], attributes: { start: 0, end: 1 } },
    { op: 'Expand', inputs: ['n', 'n'], outputs: ['rows'] },
  ],
};

/** `picked = table[at]`: an index beyond 9 makes the run throw. */
const PICKS: OnnxModel = {
  inputs: [{ name: 'at', type: 'INT64', shape: ['batch', 'count'] }],
  outputs: [{ name: 'picked', type: 'FP32', shape: ['batch', 'count'] }],
  nodes: [{ op: 'Gather', inputs: ['table', 'at'], outputs: ['picked'] }],
  weights: [
    {
      name: 'table',
      type: 'FP32',
      shape: [10],
      bytes: new Uint8Array(Float32Array.from({ length: 10 }, (_, i) => i / 10).buffer),
    },
  ],
};

/** `y`: the rows twice, one half after the other, although the names say that there are as many. */
const TWICE: OnnxModel = {
  ...identity('FP32'),
  nodes: [{ op: 'Concat', inputs: ['x', 'x'], outputs: ['y'], attributes: { axis: 0 } }],
};

/** `s = a · bᵀ`: each row of `a` by all rows of `b`, with these dimensions. */
function products(n: string, m: string): OnnxModel {
  return {
    inputs: [
      { name: 'a', type: 'FP32', shape: [n, 2] },
      { name: 'b', type: 'FP32', shape: [m, 2] },
    ],
    outputs: [{ name: 's', type: 'FP32', shape: [n, m] }],
    nodes: [
      { op: 'Transpose', inputs: ['b'], outputs: ['columns'], attributes: { perm: [1, 0] } },
      { op: 'MatMul', inputs: ['a', 'columns'], outputs: ['s'] },
    ],
  };
}

/** `y = a + b`, with these first dimensions. */
function sums(n: string, m: string, sum = n): OnnxModel {
  return {
    ...products(n, m),
    outputs: [{ name: 'y', type: 'FP32', shape: [sum, 2] }],
    nodes: [{ op: 'Add', inputs: ['a', 'b'], outputs: ['y'] }],
  };
}

/** The rows of the run of each call, by what it says to its first row. */
async function rowsOfRuns(
  { inferenceBatch }: LoadedModel,
  calls: readonly (readonly number[][])[],
): Promise<number[]> {
  const answers = (await inferenceBatch?.(calls.map((x) => ({ x })))) as { rows: BigInt64Array }[];
  return answers.map(({ rows }) => Number(rows[0]));
}

function callOf(rows: number, size: number): number[][] {
  return Array.from({ length: rows }, () => Array<number>(size).fill(0));
}

describe('calls of one batch', () => {
  test('are joined by the shape of their rows, up to 8 rows in a run', async (t) => {
    const model = await load(t, COUNTS_ROWS);
    assert.deepEqual(model.config, { batchSize: 8, maxBatchDelay: 0, repeatable: true });
    const calls = [callOf(1, 2), callOf(2, 3), callOf(3, 2), callOf(9, 2), callOf(1, 3)];
    assert.deepEqual(await rowsOfRuns(model, calls), [4, 3, 4, 9, 3]);
  });

  test('have as many rows in a run as the operator allows calls in a batch', async (t) => {
    const model = await load(t, COUNTS_ROWS, { batchSize: 3 });
    assert.deepEqual(await rowsOfRuns(model, [callOf(1, 2), callOf(1, 2), callOf(2, 2)]), [2, 2, 2]);
    const later = await rowsOfRuns(model, Array<number[][]>(5).fill(callOf(1, 2)));
    assert.deepEqual(later, [5, 5, 5, 5, 5], 'the operator has allowed more since');
  });

  test('get their own answers, of mixed shapes and with a tenth bad', async (t) => {
    const { inferenceBatch } = await load(t, PICKS, { batchSize: 32 });
    const calls = Array.from({ length: 40 }, (_, i) => {
      const row = Array.from({ length: 1 + (i % 3) }, (__, j) => (i + j) % 10);
      return i % 10 === 7 ? [...row.slice(1), 99] : row;
    });
    const answers = (await inferenceBatch?.(calls.map((at) => ({ at })))) as unknown[];
    for (const [i, answer] of answers.entries()) {
      if (i % 10 === 7) assert.match((answer as Error).message, /out of data bounds, idx=99/);
      else {
        const { picked } = answer as { picked: Float32Array };
        assert.deepEqual(
          picked,
          Float32Array.from(calls[i] as number[], (at) => at / 10),
        );
      }
    }
  });

  test('fail alone if they cannot be read', async (t) => {
    const { inferenceBatch } = await load(t, PICKS);
    const [good, bad] = (await inferenceBatch?.([{ at: [1] }, { at: 'a' }])) as unknown[];
    assert.deepEqual(good, { picked: new Float32Array([0.1]) });
    assert.match((bad as Error).message, /^Input "at": the model wants INT64/);
  });

  test('run one by one if the outputs do not have the rows of the inputs, which the log says once', async (t) => {
    const hints: string[] = [];
    writeHintsTo((line) => hints.push(line));
    const { inferenceBatch } = await load(t, TWICE);
    const row = (n: number): Float32Array => new Float32Array([n, n]);
    const answers = [{ y: [row(1), row(1)] }, { y: [row(2), row(2)] }];
    for (let i = 0; i < 2; i += 1)
      assert.deepEqual(await inferenceBatch?.([{ x: [[1, 1]] }, { x: [[2, 2]] }]), answers);
    assert.equal(hints.length, 1);
    assert.match(
      hints[0] as string,
      /^The outputs of the model do not have a row for each row of its inputs,/,
    );
  });

  test('run one by one after a call alone whose outputs do not have its rows', async (t) => {
    const hints: string[] = [];
    writeHintsTo((line) => hints.push(line));
    const { inference } = await load(t, TWICE);
    await inference({ x: [[1, 1]] });
    assert.equal(hints.length, 1);
  });
});

/** `y`: the places of what is not 0, as rows. */
const FINDS: OnnxModel = {
  inputs: [{ name: 'x', type: 'FP32', shape: ['n', 2] }],
  outputs: [{ name: 'y', type: 'INT64', shape: ['n', 2] }],
  nodes: [
    { op: 'NonZero', inputs: ['x'], outputs: ['places'] },
    { op: 'Transpose', inputs: ['places'], outputs: ['y'], attributes: { perm: [1, 0] } },
  ],
};

const ASKED: Loading = { batchSize: 8, asksForBatches: true };

describe('a model takes no batches, asked or not,', () => {
  for (const [why, model] of [
    ['with a fixed first dimension', identity('FP32', [1, 2])],
    ['of which another dimension is that of the rows', products('n', 'n')],
    ['of which another dimension is that of the rows of another input', products('s0', 's1')],
    ['whose inputs have rows of different names', sums('nodes', 'edges')],
    ['whose outputs have rows of another name', sums('n', 'n', 'found')],
    ['whose outputs do not say how many dimensions they have', unsized(identity('FP32', null))],
  ] as const)
    test(why, async (t) => {
      for (const loading of [{}, ASKED]) {
        const { inferenceBatch, config } = await load(t, model, loading);
        assert.deepEqual([inferenceBatch, config], [undefined, undefined]);
      }
    });
});

/** With an operator of which nobody knows the shape of the output. */
function unsized(model: OnnxModel): OnnxModel {
  const shape = { name: 'shape', type: 'INT64', shape: ['rank'] } as const;
  const nodes: OnnxModel['nodes'] = [{ op: 'Reshape', inputs: ['x', 'shape'], outputs: ['y'] }];
  return { ...model, inputs: [...model.inputs, shape], nodes };
}

describe('a model takes batches only if it is asked,', () => {
  const alone =
    /^calls run one by one, because the model does not name its rows: .* first dimension of a, b, y one name .*set batchSize for this model/;
  for (const [why, model, told] of [
    ['of which one input has no name for its rows', sums('n', '', 'n'), alone],
    ['of tf2onnx', sums('unk__1', 'unk__2', 'unk__3'), alone],
    ['of PaddlePaddle', sums('p2o.DynamicDimension.0', 'p2o.DynamicDimension.0'), alone],
    ['with names of no meaning', sums('?', 'None'), alone],
    ['of PyTorch without names', sums('a_dynamic_axes_1', 'b_dynamic_axes_1', 'Addy_dim_0'), alone],
    ['of which the rows are those that it finds', FINDS, null],
  ] as const)
    test(why, async (t) => {
      const quiet = await load(t, model);
      assert.equal(quiet.inferenceBatch, undefined);
      const [, second] = await linesOfInit(quiet, 'info');
      if (told === null) assert.equal(second, undefined);
      else assert.match(String(second), told);
      const asked = await load(t, model, ASKED);
      assert.equal((await linesOfInit(asked, 'info')).length, 1);
      assert.notEqual(asked.inferenceBatch, undefined);
    });

  test('and then its rows come back as those of their calls', async (t) => {
    const { inferenceBatch } = await load(t, sums('unk__1', 'unk__2'), ASKED);
    const answers = await inferenceBatch?.([1, 2].map((x) => ({ a: [x, 0], b: [x, 0] })));
    assert.deepEqual(answers, [{ y: new Float32Array([2, 0]) }, { y: new Float32Array([4, 0]) }]);
  });
});

test('sizes that contradict each other are the fault of the call', async (t) => {
  const { inference } = await load(t, {
    inputs: ['ids', 'mask'].map((name) => ({ name, type: 'INT64', shape: ['batch', 'sequence'] })),
    outputs: [{ name: 'y', type: 'INT64', shape: ['batch', 'sequence'] }],
    nodes: [{ op: 'Add', inputs: ['ids', 'mask'], outputs: ['y'] }],
  });
  await assert.rejects(inference({ ids: [[1, 2]], mask: [[1, 2, 3]] }), {
    code: 'SERVE_BAD_BODY',
    message:
      'Input "mask": its dimension "sequence" is 3, but that of "ids" is 2; the model wants them to be the same.',
  });
  assert.deepEqual(await inference({ ids: [[1, 2]], mask: [[1]] }), { y: [new BigInt64Array([2n, 3n])] });
});

/** The lines of one level that a start logs. */
async function linesOfInit(
  { init, [WARM_UP]: warmUp }: LoadedModel,
  level: 'info' | 'warn' = 'warn',
): Promise<string[]> {
  const lines = { debug: [], info: [], warn: [], error: [] } as Record<string, string[]>;
  const noteAs = (kind: string) => (line: string) => lines[kind]?.push(line);
  const log = { debug: noteAs('debug'), info: noteAs('info'), warn: noteAs('warn'), error: noteAs('error') };
  const worker = { index: 0, gpu: null, threads: 1 };
  init({ log, worker });
  await warmUp.run({ log, worker });
  return lines[level] ?? [];
}

test('the first worker logs what the model takes and gives', async (t) => {
  assert.deepEqual(await linesOfInit(await load(t, PICKS), 'info'), [
    'takes at INT64 [-1, -1]; gives picked FP32 [-1, -1]; runs on cpu',
  ]);
});

describe('the warm-up', () => {
  test('runs zeros, and says nothing if they work', async (t) => {
    for (const model of [identity('FP32'), identity('BYTES', []), identity('FP16', [1, 3, 'w']), COUNTS_ROWS])
      assert.deepEqual(await linesOfInit(await load(t, model)), []);
  });

  test('says in a line if zeros do not work, and names the file that it would take', async (t) => {
    const model = {
      ...PICKS,
      weights: [{ ...PICKS.weights?.[0], shape: [0], bytes: new Uint8Array() }],
    } as OnnxModel;
    const loaded = await load(t, model);
    assert.deepEqual((await linesOfInit(loaded, 'info')).slice(1), [
      'the model does not run with zeros, so the first calls are slower: m.example.json beside it may have an input that works',
    ]);
    assert.deepEqual(await linesOfInit(loaded), []);
  });

  for (const [example, told] of [
    ['{"at": [1, 2]}', null],
    ['[[1], [2]]', null],
    ['{"at": [99]}', /out of data bounds, idx=99/],
    ['{"at": ', /: m\.example\.json is not valid JSON: /],
    ['{"to": [1]}', /: Input "at" is missing/],
  ] as const)
    test(`takes ${example} from the file`, async (t) => {
      const path = join(appFolder(t, { 'm.example.json': example }), 'm.onnx');
      const lines = await linesOfInit(await loadModel(writeOnnx(path, PICKS)));
      assert.equal(lines.length, told === null ? 0 : 1);
      if (told !== null) assert.match(lines[0] as string, told);
    });

  test('finds out that outputs have no rows, before any call', async (t) => {
    const hints: string[] = [];
    writeHintsTo((line) => hints.push(line));
    const model = await load(t, TWICE);
    await linesOfInit(model);
    assert.equal(hints.length, 1);
  });
});

test('outputs that are no tensors are left out, which the log says', async (t) => {
  const model = await load(t, {
    ...identity('FP32'),
    outputs: [
      { name: 'y', type: 'FP32', shape: ['batch', 2] },
      { name: 'all', type: 'FP32', shape: [], isSequence: true },
    ],
    nodes: [
      { op: 'Identity', inputs: ['x'], outputs: ['y'] },
      { op: 'SequenceConstruct', inputs: ['x'], outputs: ['all'] },
    ],
  });
  assert.deepEqual(await model.inference([1, 2]), { y: new Float32Array([1, 2]) });
  assert.deepEqual(await linesOfInit(model), [
    'Outputs that are no tensors are left out of the answers: all. Make a tensor of a sequence in the model, such as with ConcatFromSequence.',
  ]);
  assert.match(leftOutText(['map'], new Set(['ZipMap'])), /: map\. They are maps: .* zipmap=False\.$/);
});

test('a model beyond the memory of the machine is the failure of its call alone', async (t) => {
  const { inference } = await load(t, {
    inputs: [{ name: 'shape', type: 'INT64', shape: [1] }],
    outputs: [{ name: 'y', type: 'FP32', shape: ['n'] }],
    nodes: [{ op: 'ConstantOfShape', inputs: ['shape'], outputs: ['y'] }],
  });
  await assert.rejects(inference({ shape: [10 ** 13] }), /Failed to allocate memory/);
  assert.deepEqual(await inference({ shape: [1] }), { y: new Float32Array(1) });
});

test('examples beside another model are not taken', async (t) => {
  const folder = appFolder(t, {});
  writeFileSync(join(folder, 'other.example.json'), '{');
  assert.deepEqual(await linesOfInit(await loadModel(writeOnnx(join(folder, 'm.onnx'), PICKS))), []);
});
