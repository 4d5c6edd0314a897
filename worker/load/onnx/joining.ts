/**
 * Whether rows of several calls may run together. That is a claim about the model which no example proves, so it needs the
 * model's own word, or the operator's: one name for the first dimension of everything.
 */
import type { Signature } from '../../../protocol/values/tensor.js';
import { FREE } from '../../formats/open-inference/signed-inputs.js';
import type { DeclaredShape, ModelWords } from './model-words.js';

/**
 * `rows`: the model says that each row of its outputs belongs to the row of its inputs. The others do not say so: it has
 * an operator of which the number of results depends on the values, or names that say nothing; the operator may know
 * better. `none`: the rows are not the same ones.
 */
export type RowsClaim = 'rows' | 'found' | 'unnamed' | 'none';

export function rowsClaim({ inputs, outputs }: Signature, words: ModelWords): RowsClaim {
  const isFree = [...inputs, ...outputs].every(({ shape }) => shape?.[0] === FREE);
  if (inputs.length === 0 || !isFree) return 'none';
  const shapes = [
    ...inputs.map(({ name }) => words.inputs.get(name)),
    ...outputs.map(({ name }) => words.outputs.get(name)),
  ];
  const firsts = shapes.map((shape) => meaning(shape?.[0]));
  const [rows, another] = new Set(firsts.filter((name) => name !== null));
  const others = shapes.flatMap((shape = []) => shape.slice(1).map(meaning));
  if (another !== undefined || (rows !== undefined && others.includes(rows))) return 'none';
  if (FINDERS.some((operator) => words.operators.has(operator))) return 'found';
  return firsts.includes(null) ? 'unnamed' : 'rows';
}

/** Operators that give as many results as they find. */
const FINDERS = ['NonZero', 'NonMaxSuppression', 'Compress', 'Unique'];

/** The name of a free dimension; null if it says nothing. */
function meaning(dimension: DeclaredShape[number] | undefined): string | null {
  return typeof dimension === 'string' && !SAYS_NOTHING.test(dimension) ? dimension : null;
}

/**
 * Names for any size: of tf2onnx (`unk__7`), of PaddlePaddle (`p2o.DynamicDimension.0`), and of PyTorch for an axis that
 * was not named (`x_dynamic_axes_1`, `Concatoutput_dim_0`).
 */
const SAYS_NOTHING = /^(?:|\?|-1|None|unk__\d+|p2o\.DynamicDimension\.\d+|.+_dynamic_axes_\d+|.+_dim_\d+)$/;

/** `isAsked`: the operator asks for batches of this model. */
export function mayJoin(claim: RowsClaim, isAsked: boolean): boolean {
  return claim === 'rows' || (claim !== 'none' && isAsked);
}

/** The line for a model that runs alone only because its names say nothing. */
export function unnamedText({ inputs, outputs }: Signature): string {
  const names = [...inputs, ...outputs].map(({ name }) => name).join(', ');
  return `calls run one by one, because the model does not name its rows: if each row of its outputs belongs to the same row of its inputs, give the first dimension of ${names} one name in the file, or set batchSize for this model (--batch-size 8 if it is the only one)`;
}
