/**
 * Reads what the file of a model says of itself, which its session does not tell: the shapes that it declares, with the
 * names of dimensions, and its operators (onnx/onnx.proto). The weights are skipped.
 *
 * These words also say whether rows of several calls may run together. That is a claim about the model which no example
 * proves, so it needs the model's own word, or the operator's: one name for the first dimension of everything.
 */
import { readProtobuf, type ProtobufReader, type Range } from '../../../protocol/protobuf-file.js';
import type { Signature } from '../../../protocol/values/tensor.js';
import { FREE } from '../../formats/open-inference/signed-inputs.js';

/** A dimension is a size, or a name for one that is free; the name may be empty. */
export type DeclaredShape = readonly (number | string)[];

export interface ModelWords {
  /** By the names of inputs and outputs; one that the file gives no shape is not in them. */
  readonly inputs: ReadonlyMap<string, DeclaredShape>;
  readonly outputs: ReadonlyMap<string, DeclaredShape>;
  /** The types of all nodes, also those in branches, loops and functions. */
  readonly operators: ReadonlySet<string>;
}

export function readModelWords(path: string): ModelWords {
  const words = {
    inputs: new Map<string, DeclaredShape>(),
    outputs: new Map<string, DeclaredShape>(),
    operators: new Set<string>(),
  };
  readProtobuf(path, (reader, model) => {
    for (const { number, content } of reader.fields(model)) {
      if (content === null) continue;
      if (number === MODEL_GRAPH) readGraph(reader, content, words.operators, words);
      if (number === MODEL_FUNCTION) readNodes(reader, content, FUNCTION_NODE, words.operators);
    }
  });
  return words;
}

const MODEL_GRAPH = 7;
const MODEL_FUNCTION = 25;
const FUNCTION_NODE = 7;
const GRAPH_NODE = 1;
const GRAPH_INPUT = 11;
const GRAPH_OUTPUT = 12;
const NODE_OPERATOR = 4;
const NODE_ATTRIBUTE = 5;
const ATTRIBUTE_GRAPH = 6;
const ATTRIBUTE_GRAPHS = 11;
const VALUE_NAME = 1;
const VALUE_TYPE = 2;
const TYPE_TENSOR = 1;
const TENSOR_SHAPE = 2;
const SHAPE_DIMENSION = 1;
const DIMENSION_SIZE = 1;
const DIMENSION_NAME = 2;

type Shapes = Map<string, DeclaredShape>;

function readGraph(
  reader: ProtobufReader,
  graph: Range,
  operators: Set<string>,
  { inputs, outputs }: { readonly inputs: Shapes; readonly outputs: Shapes },
): void {
  readNodes(reader, graph, GRAPH_NODE, operators);
  for (const { number, content } of reader.fields(graph)) {
    if (content === null) continue;
    if (number === GRAPH_INPUT) readValue(reader, content, inputs);
    if (number === GRAPH_OUTPUT) readValue(reader, content, outputs);
  }
}

/** `field`: number of the field of the nodes, in a graph or in a function. */
function readNodes(reader: ProtobufReader, range: Range, field: number, operators: Set<string>): void {
  for (const node of contents(reader, range, field))
    for (const { number, content } of reader.fields(node)) {
      if (content === null) continue;
      if (number === NODE_OPERATOR) operators.add(reader.text(content));
      if (number !== NODE_ATTRIBUTE) continue;
      for (const inner of contents(reader, content, ATTRIBUTE_GRAPH, ATTRIBUTE_GRAPHS))
        readNodes(reader, inner, GRAPH_NODE, operators);
    }
}

function readValue(reader: ProtobufReader, value: Range, shapes: Shapes): void {
  const [name] = contents(reader, value, VALUE_NAME);
  const [type] = contents(reader, value, VALUE_TYPE);
  const [tensor] = type === undefined ? [] : contents(reader, type, TYPE_TENSOR);
  const [shape] = tensor === undefined ? [] : contents(reader, tensor, TENSOR_SHAPE);
  if (name === undefined || shape === undefined) return;
  const dimensions = [...contents(reader, shape, SHAPE_DIMENSION)];
  shapes.set(
    reader.text(name),
    dimensions.map((dimension) => readDimension(reader, dimension)),
  );
}

function readDimension(reader: ProtobufReader, dimension: Range): number | string {
  let read: number | string = '';
  for (const { number, content, value } of reader.fields(dimension)) {
    if (number === DIMENSION_NAME && content !== null) read = reader.text(content);
    if (number === DIMENSION_SIZE && content === null) read = value;
  }
  return read;
}

/** The contents of the fields of these numbers. */
function* contents(reader: ProtobufReader, range: Range, ...numbers: readonly number[]): Generator<Range> {
  for (const { number, content } of reader.fields(range))
    if (content !== null && numbers.includes(number)) yield content;
}

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
