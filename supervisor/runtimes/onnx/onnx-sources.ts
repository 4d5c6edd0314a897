/** Finds the files beside an ONNX model that belong to it: its weights, if they are not in the model, and its example. */
import { basename, extname, join, dirname } from 'node:path';
import type { Sources } from '../../watch/sources.js';

export const onnxSources: Sources = {
  languages: ['ONNX'],
  extensions: ['.onnx'],
  foldersOfOthers: [],
  localImports: (file, text) => {
    const folder = dirname(file);
    const named = [...text.matchAll(LOCATION)].map(([, length = '', value = '']) =>
      cutToBytes(value, length.charCodeAt(0)),
    );
    return [...new Set([...named.map((name) => join(folder, name)), ...usualNames(file)])];
  },
};

/**
 * An entry of a tensor's external data in the protobuf, read as text: the key `location`, and its value after the length
 * in bytes. Bytes that are no text are replaced, but those around a path are ASCII.
 */
// eslint-disable-next-line no-control-regex -- the protobuf is binary
const LOCATION = /\n\x08location\x12([\x01-\x7f])([^\0-\x1f]{1,127})/g;

function cutToBytes(text: string, bytes: number): string {
  return Buffer.from(text).subarray(0, bytes).toString();
}

/** The names that exporters give to the weights (a large model is not read), and the name of the example. */
function usualNames(file: string): string[] {
  const stem = join(dirname(file), basename(file, extname(file)));
  return [`${file}.data`, `${file}_data`, `${stem}.data`, `${stem}.bin`, `${stem}.example.json`];
}
