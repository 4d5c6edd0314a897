/** The rule of joining, and what callers get under it from models that only a function stands for. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Tensor, type Signature } from '../../../../protocol/values/tensor.js';
import {
  mayJoin,
  rowsClaim,
  type RowsClaim,
  type DeclaredShape,
} from '../../../../worker/load/onnx/model-words.js';
import { OnnxModel } from '../../../../worker/load/onnx/onnx-model.js';
import type { Onnxruntime } from '../../../../worker/load/onnx/onnxruntime.js';

type Shapes = Readonly<Record<string, DeclaredShape>>;

function claimOf(inputs: Shapes, outputs: Shapes, operators: readonly string[] = []): RowsClaim {
  const words = { inputs: new Map(Object.entries(inputs)), outputs: new Map(Object.entries(outputs)) };
  return rowsClaim(signatureOf(inputs, outputs), { ...words, operators: new Set(operators) });
}

function signatureOf(inputs: Shapes, outputs: Shapes): Signature {
  const specs = (shapes: Shapes): Signature['inputs'] =>
    Object.entries(shapes).map(([name, shape]) => ({
      name,
      datatype: 'INT32',
      shape: shape.map((size) => (typeof size === 'number' ? size : -1)),
    }));
  return { inputs: specs(inputs), outputs: specs(outputs) };
}

const CLAIMS: readonly (readonly [what: string, claim: RowsClaim, ...Parameters<typeof claimOf>])[] = [
  ['one name', 'rows', { x: ['batch', 3] }, { y: ['batch'], z: ['batch', 'size'] }],
  ['one name and NonZero', 'found', { x: ['batch', 3] }, { y: ['batch'] }, ['Add', 'NonZero']],
  ['no name in one place', 'unnamed', { x: ['batch', 3] }, { y: [''] }],
  ['names of PaddlePaddle', 'unnamed', { x: ['p2o.DynamicDimension.0'] }, { y: ['p2o.DynamicDimension.0'] }],
  ['names of PyTorch', 'unnamed', { x: ['x_dynamic_axes_1'] }, { y: ['Gemmy_dim_0'] }],
  ['a detector of unnamed rows', 'found', { x: ['batch'] }, { y: [''] }, ['NonMaxSuppression']],
  ['another name', 'none', { x: ['batch', 4] }, { y: ['num_dets', 2] }],
  ['the name for another dimension, too', 'none', { x: ['n', 4] }, { y: ['n', 'n'] }],
  ['a fixed dimension', 'none', { x: ['n', 4] }, { y: ['n'], count: [1] }],
  ['no dimension', 'none', { x: ['n', 4] }, { y: ['n'], count: [] }],
  ['no input', 'none', {}, { y: ['n'] }],
];

for (const [what, claim, ...model] of CLAIMS)
  test(`the claim of a model with ${what} is: ${claim}`, () => assert.equal(claimOf(...model), claim));

/** Rows of two numbers. */
type Rows = readonly (readonly [number, number])[];

/** A function of the rows, with the true names of the dimensions of what it gives. */
interface Behaviour {
  readonly rows: string;
  readonly columns: string | 2;
  readonly of: (x: Rows) => readonly (readonly number[])[];
}

const BEHAVIOURS: readonly Behaviour[] = [
  { rows: 'n', columns: 2, of: (x) => x.map(([a, b]) => [a + b, a - b]) },
  { rows: 'found', columns: 2, of: (x) => x.filter(([a]) => a > 0) },
  {
    rows: 'found',
    columns: 2,
    of: (x) => x.flatMap(([a, b]) => Array<number[]>(Math.max(0, a)).fill([a, b])),
  },
  { rows: 'twice', columns: 2, of: (x) => [...x, ...x] },
  { rows: 'one', columns: 2, of: (x) => [[x.reduce((sum, [a]) => sum + a, 0), x.length]] },
  { rows: 'n', columns: 'n', of: (x) => x.map(([a]) => x.map(([, b]) => a * b)) },
];

/** The first dimension in the file: its true name, or one that says nothing. */
const named = (name: string): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 4, arbitrary: fc.constant(name) },
    { weight: 1, arbitrary: fc.constantFrom('', 'unk__3') },
  );

const model = fc.constantFrom(...BEHAVIOURS).chain((behaviour) =>
  fc.record({
    behaviour: fc.constant(behaviour),
    x: named('n'),
    // Only the rows may be without a name: one for another dimension cannot be seen to be that of the rows.
    y: fc.tuple(named(behaviour.rows), fc.constant(behaviour.columns)),
  }),
);
const digit = fc.integer({ min: -1, max: 2 });
const call = fc.array(fc.tuple(digit, digit), { maxLength: 3 });
const batches = fc.array(fc.array(call, { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 4 });

function modelOf({ of }: Behaviour, signature: Signature, maxRows: number | null): OnnxModel {
  const run = ({ x }: Record<string, FakeTensor>): Promise<Record<string, FakeTensor>> => {
    const { data, dims } = x as FakeTensor;
    const rows = of(
      Array.from({ length: dims[0] as number }, (_, i) => [data[2 * i], data[2 * i + 1]]) as Rows[number][],
    );
    const y = new FakeTensor('int32', Int32Array.from(rows.flat()), [rows.length, rows[0]?.length ?? 2]);
    return Promise.resolve({ y });
  };
  const session = { inputMetadata: [], run } as unknown as Onnxruntime.InferenceSession;
  return new OnnxModel({ Tensor: FakeTensor } as unknown as typeof Onnxruntime, session, signature, maxRows);
}

class FakeTensor {
  constructor(
    readonly type: string,
    readonly data: Int32Array,
    readonly dims: readonly number[],
  ) {}
}

test('of a model whose names are true, each caller gets what it gets alone', async () => {
  let joined = 0;
  await fc.assert(
    fc.asyncProperty(model, batches, fc.boolean(), async ({ behaviour, x, y }, given, isAsked) => {
      const [inputs, outputs] = [{ x: [x, 2] }, { y }];
      const signature = signatureOf(inputs, outputs);
      // An operator may ask for what the names do not say, and then vouches for it.
      const isNamed = [x, ...y].every((name) => name === 2 || ['n', behaviour.rows].includes(name));
      const joins = mayJoin(claimOf(inputs, outputs), isAsked && isNamed);
      if (joins) joined += 1;
      const shared = modelOf(behaviour, signature, joins ? 8 : null);
      const alone = modelOf(behaviour, signature, null);
      for (const calls of given) {
        const answers = await shared.inferBatch(calls.map((rows) => ({ x: tensorOf(rows) })));
        for (const [i, rows] of calls.entries())
          assert.deepEqual(answers[i], await alone.infer({ x: tensorOf(rows) }));
      }
    }),
  );
  assert.ok(joined > 0, 'some are joined');
});

function tensorOf(rows: Rows): Tensor {
  return new Tensor('INT32', [rows.length, 2], Int32Array.from(rows.flat()));
}
