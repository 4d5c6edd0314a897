/** The parts that bodies and answers of all tasks have: fields of JSON, numbers that an app returned, refusals. */
import { badField, badOutput } from '../../protocol/errors.js';
import type { Call } from '../../protocol/wire/messages.js';
import { isObject, kindOf, shown, type Fields, type Tensor } from '../../protocol/values/tensor.js';
import type { EncodedOutput } from './body-format.js';
import { readJson } from './json.js';
import { numberOfHalfBits } from './open-inference/elements.js';
import { outputsOf } from './open-inference/outputs.js';
import { Reply, assertNoError } from './reply.js';

/** @throws SERVE_BAD_BODY */
export function fieldsOf(body: Buffer): Fields {
  const value = body.length === 0 ? null : readJson(body);
  if (isObject(value)) return value;
  throw badField('', `The body must be a JSON object, not ${body.length === 0 ? 'empty' : kindOf(value)}.`);
}

/** Undefined if the field is left out, or null. @throws SERVE_BAD_BODY for anything but a whole number from 1 */
export function wholeNumber(fields: Fields, name: string): number | undefined {
  const given = fields[name] ?? undefined;
  if (given === undefined || (Number.isSafeInteger(given) && (given as number) >= 1))
    return given as number | undefined;
  throw badField(name, `"${name}" must be a whole number from 1, not ${shown(given)}.`);
}

/** Numbers of any datatype, as doubles, with their shape. @throws SERVE_OUTPUT_INVALID, also for NaN and infinities */
export function numbersOf(
  value: unknown,
  name: string,
): { readonly data: Float64Array; readonly shape: readonly number[] } {
  const { datatype, shape, data } = outputsOf({ [name]: value }, null).get(name) as Tensor;
  if (datatype === 'BYTES' || datatype === 'BOOL')
    throw badOutput(`The app returned ${name} that are no numbers.`);
  const ofBits = datatype === 'FP16' || datatype === 'BF16';
  const numbers = data as ArrayLike<number | bigint>;
  const doubles = new Float64Array(numbers.length);
  // `Float64Array.from` and a callback for each number take many times as long.
  for (let i = 0; i < doubles.length; i += 1) {
    const given = numbers[i] as number;
    const double = ofBits ? numberOfHalfBits(given, datatype) : Number(given);
    if (!Number.isFinite(Math.fround(double)))
      throw badOutput(`The app returned ${name} with a number that 32 bits cannot hold: ${double}.`);
    doubles[i] = double;
  }
  return { data: doubles, shape };
}

/**
 * Writes the app's value by `encode`; the app may return it as the field `name` of an object, beside `tokens`, the number of
 * those of all texts, if it has counted them. An error of
 * the app's own keeps its status. @throws SERVE_HTTP_ERROR, SERVE_OUTPUT_INVALID
 */
export function resultOf(
  answer: Reply,
  call: Call,
  name: string,
  encode: (value: unknown, model: string, tokens: number | undefined) => EncodedOutput,
): Reply {
  const { head, body } = answer;
  assertNoError(answer);
  if (body.kind === 'stream' || body.kind === 'bytes')
    throw badOutput(`The app must return ${name}, not a body of its own.`);
  const { value } = body;
  const model = new URLSearchParams(call.dialectParams).get('model') ?? '';
  const isNamed = typeof value === 'object' && value !== null && Object.hasOwn(value, name);
  const { [name]: own, tokens: counted } = (isNamed ? value : { [name]: value }) as Fields;
  const tokens = counted ?? undefined;
  if (tokens !== undefined && !(Number.isSafeInteger(tokens) && (tokens as number) >= 0))
    throw badOutput(`The app returned ${shown(tokens)} as its number of tokens.`);
  const { contentType, body: json } = encode(own, model, tokens as number | undefined);
  return new Reply({ ...head, contentType }, { kind: 'bytes', bytes: Buffer.from(json) });
}
