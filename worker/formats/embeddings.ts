/**
 * Embeddings in the form of OpenAI's API: the app gets texts, and its vectors leave as lists, or in base64 if the client
 * asks for that, which the official clients do on their own.
 */
import { badField, badOutput, refusal, type ServeError } from '../../protocol/errors.js';
import type { Call } from '../../protocol/wire/messages.js';
import { kindOf, shown, type Fields } from '../../protocol/values/tensor.js';
import type { DescribedApp, DialectFormat, Exchange } from './body-format.js';
import { writeJson } from './json.js';
import { fieldsOf, numbersOf, resultOf, wholeNumber } from './task-bodies.js';

type Input = readonly string[] | readonly (readonly number[])[];

function exchange(call: Call, { tokenInput }: DescribedApp): Exchange {
  let texts = 0;
  let dimensions: number | undefined;
  let isBase64 = false;
  return {
    read(body) {
      const fields = fieldsOf(body);
      const input = inputOf(fields, tokenInput === true);
      texts = input.length;
      dimensions = wholeNumber(fields, 'dimensions');
      isBase64 = asksForBase64(fields);
      return dimensions === undefined ? { input } : { input, dimensions };
    },

    write: (answer) =>
      resultOf(answer, call, 'embeddings', (value, model, tokens) => {
        const { data, shape } = numbersOf(value, 'embeddings');
        const [count, size = 0] = shape;
        if (shape.length !== 2 || count !== texts || size === 0)
          throw badOutput(
            `The app returned embeddings of the shape ${shown(shape)} for ${texts} texts; it must return one vector for each.`,
          );
        if (dimensions !== undefined && dimensions !== size) throw wrongDimensions(size, dimensions);
        const vectors = Array.from({ length: count }, (_, index) => ({
          object: 'embedding',
          index,
          embedding: vectorOf(data.subarray(index * size, (index + 1) * size), isBase64),
        }));
        const usage = tokens === undefined ? {} : { usage: { prompt_tokens: tokens, total_tokens: tokens } };
        return writeJson({ object: 'list', data: vectors, model, ...usage }, call);
      }),
  };
}

function vectorOf(numbers: Float64Array, isBase64: boolean): readonly number[] | string {
  if (!isBase64) return Array.from(numbers);
  const { buffer } = new Float32Array(numbers); // little-endian on every machine that Node runs models on
  return Buffer.from(buffer).toString('base64');
}

function wrongDimensions(size: number, dimensions: number): ServeError {
  const message = `The vectors of this model have ${size} dimensions, not ${dimensions}.`;
  return refusal(message, [{ path: ['dimensions'], message }]);
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

function asksForBase64(fields: Fields): boolean {
  const format = fields['encoding_format'] ?? 'float';
  if (format === 'base64' || format === 'float') return format === 'base64';
  throw badField('encoding_format', `"encoding_format" must be float or base64, not ${shown(format)}.`);
}

export const FORMAT: DialectFormat = {
  itemRefusal:
    'A custom service of Multi Model Server takes no texts to embed; call it at /predictions/{model_name}.',
  exchange,
};
