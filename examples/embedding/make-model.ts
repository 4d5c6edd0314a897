/**
 * Makes an embedding model of the weights of bert-tiny: npx tsx examples/embedding/make-model.ts [folder]
 *
 * bert-tiny predicts words; the state before that, a vector for each token, becomes an output of its own. Parts of a message
 * of protobuf may stand one behind the other, so the new node and the new output are written behind the file.
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const FROM = fileURLToPath(new URL('../fill-mask/models/bert-tiny/', import.meta.url));
const TO = process.argv[2] ?? fileURLToPath(new URL('bert-tiny/', import.meta.url));

/** The state of the tokens, and its name as an output. */
const STATE = '/ls.1/n2/Add_1_output_0';
const OUTPUT = 'last_hidden_state';

/** A field with a length; the numbers of fields are those of onnx.proto. None of these is longer than 127 bytes. */
function field(number: number, ...parts: readonly (Buffer | string)[]): Buffer {
  const content = Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
  return Buffer.concat([Buffer.from([8 * number + 2, content.length]), content]);
}

const node = field(1, field(1, STATE), field(2, OUTPUT), field(4, 'Identity'));
const sizes = field(
  2,
  field(1, field(2, 'batch')),
  field(1, field(2, 'sequence')),
  field(1, Buffer.from([8, 128, 1])),
);
const type = field(2, field(1, Buffer.from([8, 1]), sizes)); // FP32
const graph = field(7, node, field(12, field(1, OUTPUT), type));

mkdirSync(TO, { recursive: true });
writeFileSync(join(TO, 'model.onnx'), Buffer.concat([readFileSync(join(FROM, 'onnx/model.onnx')), graph]));
for (const name of ['tokenizer.json', 'tokenizer_config.json'])
  copyFileSync(join(FROM, name), join(TO, name));
