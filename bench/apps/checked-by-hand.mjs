/** Checks by hand what `checked-by-zod.mjs` has a schema for. */
import { HttpError } from 'banana-serve';

const isNumber = Number.isFinite;
const isText = (value) => typeof value === 'string';
const areAll = (values, is) => Array.isArray(values) && values.every(is);

const isItem = ({ id, label, score, tags, box }) =>
  isNumber(id) && isText(label) && isNumber(score) && areAll(tags, isText) && areAll(box, isNumber);

export function inference({ prompt = '', items = [] }) {
  if (!isText(prompt)) throw new HttpError(422, 'prompt is no text');
  if (!areAll(items, (item) => typeof item === 'object' && item !== null && isItem(item)))
    throw new HttpError(422, 'an item is wrong');
  return { chars: prompt.length, items: items.length };
}
