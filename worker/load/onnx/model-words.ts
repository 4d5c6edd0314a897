/**
 * Reads what the file of a model says of itself, which its session does not tell: the shapes that it declares, with the
 * names of dimensions, and its operators (onnx/onnx.proto). The weights are skipped.
 */
import { readProtobuf, type ProtobufReader, type Range } from '../../../protocol/protobuf-file.js';

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
