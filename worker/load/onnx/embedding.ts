/**
 * A model of texts as an app with the task `embedding`, without code.
 *
 * 1. The tokenizer of its folder makes tokens of each text; the package that does it is the user's, like onnxruntime.
 * 2. The texts of all calls that came together run some at a time, those of about one length together.
 * 3. The vectors of a text's tokens are averaged, unless the model has done it, and scaled to the length 1.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { badField } from '../../../protocol/errors.js';
import { kindOf, Tensor, type Fields, type Signature } from '../../../protocol/values/tensor.js';
import { readJson } from '../../formats/json.js';
import { AppLoadError } from '../explain-load-error.js';
import type { Exports } from '../../adapters/loaded-app.js';
import type { Tensors } from './rows.js';

/** The outputs that are known, the best first: a vector for each text, or for each token. */
const OUTPUTS = ['sentence_embedding', 'last_hidden_state', 'token_embeddings'];
const INPUTS = ['input_ids', 'attention_mask', 'token_type_ids'];

/** Most texts of one run. */
const MAX_TEXTS = 32;

type RunModel = (inputs: Tensors) => Promise<Tensors>;

/** The part of the package that is used. */
interface Tokenizer {
  encode(text: string): { readonly ids: readonly number[] };
}

/** Returns the output that has the vectors. @throws AppLoadError for a model that is not one of texts */
export function checkedOutput(path: string, { inputs, outputs }: Signature): Signature['outputs'][number] {
  const output = OUTPUTS.map((name) => outputs.find((one) => one.name === name)).find(
    (one) => one !== undefined,
  );
  const listed = (specs: Signature['inputs']): string => specs.map(({ name }) => name).join(', ');
  if (output === undefined)
    throw new AppLoadError(
      `${path}: the task embedding needs an output ${OUTPUTS.join(', ')}, and the model has ${listed(outputs)}. Export it without the head that predicts words or classes.`,
    );
  if (output.datatype !== 'FP32')
    throw new AppLoadError(
      `${path}: the output ${output.name} is ${output.datatype}; the task embedding needs FP32.`,
    );
  const isOfTexts = inputs.every(({ name, datatype }) => INPUTS.includes(name) && datatype === 'INT64');
  if (isOfTexts && inputs.some(({ name }) => name === 'input_ids')) return output;
  throw new AppLoadError(
    `${path}: the task embedding needs the inputs ${INPUTS.join(', ')} of INT64, and the model takes ${listed(inputs)}.`,
  );
}

/** `library`: the main file of the package that reads tokenizers. @throws AppLoadError */
export function embeddingExports(
  path: string,
  signature: Signature,
  library: string,
  run: RunModel,
): Exports {
  const tokensOf = tokenizerOf(path, library);
  const names = signature.inputs.map(({ name }) => name);
  const embed = async (calls: readonly unknown[]): Promise<unknown[]> => {
    const read = calls.map((input) => {
      try {
        return textsOf(input).map(tokensOf);
      } catch (error) {
        return error; // of its call alone
      }
    });
    const all = read.flatMap((one) => (Array.isArray(one) ? (one as Text[]) : []));
    all.sort((one, other) => one.ids.length - other.ids.length);
    for (let at = 0; at < all.length; at += MAX_TEXTS)
      await fillVectors(all.slice(at, at + MAX_TEXTS), names, run);
    return read.map((one) => {
      if (!Array.isArray(one)) return one;
      const texts = one as readonly Text[];
      const tokens = texts.reduce((sum, { ids }) => sum + ids.length, 0);
      return { embeddings: texts.map(({ vector }) => vector), tokens };
    });
  };
  return {
    task: 'embedding',
    example: { input: ['hello'] },
    inference: async (input: unknown) => (await embed([input]))[0],
    inferenceBatch: embed,
  };
}

/** One text of a call. */
interface Text {
  readonly ids: readonly number[];
  vector: Float32Array;
}

/** Returns the function that makes tokens of a call's text. It throws SERVE_BAD_BODY for one that the model cannot read to its end. */
function tokenizerOf(path: string, library: string): (text: string, index: number) => Text {
  const file = ['.', '..'].map((folder) => join(dirname(path), folder, 'tokenizer.json')).find(existsSync);
  if (file === undefined)
    throw new AppLoadError(`${path}: the task embedding needs the file tokenizer.json beside the model.`);
  const config = fieldsOfFile(join(dirname(file), 'tokenizer_config.json'));
  const { max_position_embeddings: positions } = fieldsOfFile(join(dirname(file), 'config.json'));
  const { model_max_length: most } = config;
  const { Tokenizer: Reader } = createRequire(import.meta.url)(library) as {
    readonly Tokenizer: new (tokenizer: object, config: object) => Tokenizer;
  };
  const tokenizer = new Reader(fieldsOfFile(file), config);
  const maxTokens = Math.min(...[most, positions].filter((one) => typeof one === 'number'), Infinity);
  return (text, index) => {
    const { ids } = tokenizer.encode(text);
    if (ids.length > 0 && ids.length <= maxTokens) return { ids, vector: new Float32Array() };
    throw badField(
      'input',
      `Text ${index} has ${ids.length} tokens; the model reads 1 to ${maxTokens}. Split it if it is too long.`,
    );
  };
}

/** Runs the model for these texts together. `names`: its inputs. */
async function fillVectors(texts: readonly Text[], names: readonly string[], run: RunModel): Promise<void> {
  const length = Math.max(...texts.map(({ ids }) => ids.length));
  const shape = [texts.length, length];
  const [ids, mask] = [new BigInt64Array(texts.length * length), new BigInt64Array(texts.length * length)];
  texts.forEach((text, row) =>
    text.ids.forEach((id, i) => {
      ids[row * length + i] = BigInt(id);
      mask[row * length + i] = 1n;
    }),
  );
  const all = { input_ids: ids, attention_mask: mask, token_type_ids: new BigInt64Array(ids.length) };
  const inputs = names.map(
    (name) => [name, new Tensor('INT64', shape, all[name as keyof typeof all])] as const,
  );
  const [output] = Object.values(await run(Object.fromEntries(inputs)));
  const { shape: sizes, data } = output as Tensor<'FP32'>;
  const size = sizes.at(-1) as number;
  const perText = data.length / texts.length;
  texts.forEach((text, row) => {
    const own = data.subarray(row * perText, (row + 1) * perText);
    text.vector = scaled(sizes.length === 2 ? own : meanOf(own, size, text.ids.length));
  });
}

/** The tokens of a text stand before the padding, so its mask is its length. */
function meanOf(data: Float32Array, size: number, tokens: number): Float32Array {
  const sum = new Float32Array(size);
  for (let i = 0; i < tokens * size; i += 1) sum[i % size] = (sum[i % size] as number) + (data[i] as number);
  return sum.map((one) => one / tokens);
}

function scaled(vector: Float32Array): Float32Array {
  const length = Math.hypot(...vector);
  return length === 0 ? vector.slice() : vector.map((one) => one / length);
}

/** @throws SERVE_BAD_BODY */
function textsOf(given: unknown): readonly string[] {
  const { input = null } = (given ?? {}) as { readonly input?: unknown };
  const texts: unknown = typeof input === 'string' ? [input] : input;
  if (Array.isArray(texts) && texts.length > 0 && texts.every((one) => typeof one === 'string')) return texts;
  throw badField('input', `"input" must be a list of texts, not ${kindOf(input)}.`);
}

/** The object in a file of JSON; empty without the file. @throws AppLoadError */
function fieldsOfFile(path: string): Fields {
  if (!existsSync(path)) return {};
  try {
    return readJson(readFileSync(path), basename(path)) as Fields;
  } catch (error) {
    throw new AppLoadError(`${path}: ${(error as Error).message}`);
  }
}
