/** Finds the numbers of a request that `JSON.parse` may have changed. */
import { MAX_DIMENSIONS } from '../../../protocol/values/tensor.js';

type Fields = Readonly<Record<string, unknown>>;

/** Whether the request must be read again, digit by digit. It may be any value of JSON. */
export function isInexactRequest(request: unknown): boolean {
  const { inputs, parameters } = fieldsOf(request);
  if (Object.values(fieldsOf(parameters)).some(isInexactInteger)) return true;
  return Array.isArray(inputs) && inputs.some((input) => isInexactInput(fieldsOf(input)));
}

function isInexactInput({ datatype, data }: Fields): boolean {
  return hasNumber(data, datatype === 'INT64' || datatype === 'UINT64' ? isInexactInteger : isInfinite, 0);
}

/** A list that is nested deeper is refused, whatever its numbers are. */
function hasNumber(data: unknown, isWanted: (value: unknown) => boolean, depth: number): boolean {
  if (!Array.isArray(data) || depth > MAX_DIMENSIONS) return false;
  return data.some((item) => (Array.isArray(item) ? hasNumber(item, isWanted, depth + 1) : isWanted(item)));
}

function isInexactInteger(value: unknown): boolean {
  return typeof value === 'number' && !Number.isSafeInteger(value) && !(Math.abs(value) < 2 ** 53);
}

/** JSON has no infinity: the text had a number beyond the largest. */
function isInfinite(value: unknown): boolean {
  return value === Infinity || value === -Infinity;
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}
