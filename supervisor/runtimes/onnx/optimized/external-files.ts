/**
 * Finds the files that hold the weights of an ONNX model outside of it, by walking the fields of its protobuf
 * (onnx/onnx.proto). Reads only the heads of fields that cannot name a file, so a model of gigabytes is quick.
 */
import { readProtobuf, type ProtobufReader, type Range } from '../../../../protocol/protobuf-file.js';

/** Paths as the model writes them, relative to its folder, each once. A file that is no ONNX model has none. */
export function externalLocations(model: string): string[] {
  const found = new Set<string>();
  const isRead = readProtobuf(model, (reader, whole) =>
    walk(reader, whole, MODEL, (location) => found.add(location)),
  );
  return isRead ? [...found] : [];
}

/** The messages that lead to a tensor, by the numbers of their fields. */
interface Message {
  readonly fields: Readonly<Record<number, () => Message>>;
  /** Number of the field with the entries of the place of external data. */
  readonly external?: number;
}

const TENSOR: Message = { fields: {}, external: 13 };
const SPARSE: Message = { fields: { 1: () => TENSOR, 2: () => TENSOR } };
const ATTRIBUTE: Message = {
  fields: {
    5: () => TENSOR,
    6: () => GRAPH,
    10: () => TENSOR,
    11: () => GRAPH,
    22: () => SPARSE,
    23: () => SPARSE,
  },
};
const NODE: Message = { fields: { 5: () => ATTRIBUTE } };
const GRAPH: Message = { fields: { 1: () => NODE, 5: () => TENSOR, 15: () => SPARSE } };
const FUNCTION: Message = { fields: { 7: () => NODE, 11: () => ATTRIBUTE } };
const MODEL: Message = { fields: { 7: () => GRAPH, 25: () => FUNCTION } };

function walk(
  reader: ProtobufReader,
  range: Range,
  message: Message,
  onLocation: (path: string) => void,
): void {
  for (const { number, content } of reader.fields(range)) {
    if (content === null) continue;
    const inner = message.fields[number];
    if (inner !== undefined) walk(reader, content, inner(), onLocation);
    if (number === message.external) {
      const location = locationIn(reader, content);
      if (location !== null) onLocation(location);
    }
  }
}

/** The value of an entry whose key is `location`; null for another entry. */
function locationIn(reader: ProtobufReader, range: Range): string | null {
  const texts = new Map<number, string>();
  for (const { number, content } of reader.fields(range))
    if (content !== null && content.to - content.from <= MAX_PATH_BYTES)
      texts.set(number, reader.text(content));
  return texts.get(1) === 'location' ? (texts.get(2) ?? null) : null;
}

const MAX_PATH_BYTES = 4096;
