/**
 * Embeddings in the form of OpenAI's API: the app gets texts, and its vectors leave as lists, or in base64 if the client
 * asks for that, which the official clients do on their own.
 */
import { badField, ServeError } from '../../protocol/errors.js';
import type { Call } from '../../protocol/wire/messages.js';
import { kindOf, shown } from '../../protocol/values/tensor.js';
import type { DescribedApp, DialectFormat, Exchange } from './body-format.js';
import { writeJson } from './json.js';
import { fieldsOf, numbersOf, resultOf, wholeNumber, type Fields } from './task-bodies.js';
import type { Reply } from './reply.js';

type Input = readonly string[] | readonly (readonly number[])[];

class EmbeddingsExchange implements Exchange {
  readonly #call: Call;
  readonly #takesTokens: boolean;
  #texts = 0;
  #dimensions: number | undefined;
  #isBase64 = false;

  constructor(call: Call, { tokenInput }: DescribedApp) {
    this.#call = call;
    this.#takesTokens = tokenInput === true;
  }

  read(body: Buffer): object {
    const fields = fieldsOf(body);
    const input = inputOf(fields, this.#takesTokens);
    this.#texts = input.length;
    this.#dimensions = wholeNumber(fields, 'dimensions');
    this.#isBase64 = isBase64(fields);
    return this.#dimensions === undefined ? { input } : { input, dimensions: this.#dimensions };
  }

  write(answer: Reply): Reply {
    return resultOf(answer, this.#call, 'embeddings', (value, { model, tokens }) => {
      const { data, shape } = numbersOf(value, 'embeddings');
      const [count, size = 0] = shape;
      if (shape.length !== 2 || count !== this.#texts || size === 0) throw wrongVectors(shape, this.#texts);
      if (this.#dimensions !== undefined && this.#dimensions !== size) throw this.#wrongDimensions(size);
      const vectors = Array.from({ length: count }, (_, index) => ({
        object: 'embedding',
        index,
        embedding: this.#vector(data.subarray(index * size, (index + 1) * size)),
      }));
      const usage = tokens === undefined ? {} : { usage: { prompt_tokens: tokens, total_tokens: tokens } };
      return writeJson({ object: 'list', data: vectors, model, ...usage }, this.#call);
    });
  }

  #vector(numbers: Float64Array): readonly number[] | string {
    if (!this.#isBase64) return Array.from(numbers);
    const { buffer } = new Float32Array(numbers); // little-endian on every machine that Node runs models on
    return Buffer.from(buffer).toString('base64');
  }

  #wrongDimensions(size: number): ServeError {
    const message = `The vectors of this model have ${size} dimensions, not ${this.#dimensions}.`;
    const issues = [{ path: ['dimensions'], message }];
    return new ServeError('SERVE_HTTP_ERROR', message, { status: 400, issues });
  }
}

function wrongVectors(shape: readonly number[], texts: number): ServeError {
  const message = `The app returned embeddings of the shape ${shown(shape)} for ${texts} texts; it must return one vector for each.`;
  return new ServeError('SERVE_OUTPUT_INVALID', message);
}

/** A text alone stands for a list of one, and so does a list of numbers. @throws SERVE_BAD_BODY that names the field */
function inputOf({ input }: Fields, takesTokens: boolean): Input {
  if (typeof input === 'string') return [input];
  if (!Array.isArray(input) || input.length === 0)
    throw badField('input', `"input" must be a text or a list of texts, not ${emptyOr(input)}.`);
  const list = input as readonly unknown[];
  if (list.every((one) => typeof one === 'string')) return list;
  const tokens = isTokens(list) ? [list] : list.every(isTokens) ? list : null;
  if (tokens === null) throw badField('input', '"input" must be a list of texts alone, or of tokens alone.');
  if (takesTokens) return tokens;
  throw badField('input', 'This model takes texts, not numbers of tokens: send "input" as text.');
}

function emptyOr(value: unknown): string {
  return Array.isArray(value) ? 'an empty list' : kindOf(value);
}

function isTokens(value: unknown): value is readonly number[] {
  return (
    Array.isArray(value) && value.length > 0 && value.every((one) => Number.isSafeInteger(one) && one >= 0)
  );
}

function isBase64(fields: Fields): boolean {
  const format = fields['encoding_format'] ?? 'float';
  if (format === 'base64' || format === 'float') return format === 'base64';
  throw badField('encoding_format', `"encoding_format" must be float or base64, not ${shown(format)}.`);
}

export const FORMAT: DialectFormat = {
  itemRefusal:
    'A custom service of Multi Model Server takes no texts to embed; call it at /predictions/{model_name}.',
  exchange: (call, app) => new EmbeddingsExchange(call, app),
};
