/** `application/x-www-form-urlencoded` bodies, for apps that ask for them; for others such bodies are read as JSON. */
import type { InputFormat } from './body-format.js';

/** Every value is text; a repeated name becomes an array. Broken percent escapes stay unchanged. */
export function readForm(body: Buffer): Record<string, string | string[]> {
  return collectFields(formPairs(body).map(([name, value]) => [name, value.toString()] as const));
}

export const FORMAT: InputFormat = { itemType: 'application/x-www-form-urlencoded', read: readForm };

/** Returns every pair in order. Broken percent escapes stay unchanged. */
export function formPairs(text: Buffer): [name: string, value: Buffer][] {
  const pairs = text.toString('latin1').split('&');
  return pairs.filter((pair) => pair !== '').map(readPair);
}

function readPair(pair: string): [name: string, value: Buffer] {
  const equals = pair.indexOf('=');
  const [name, value] = equals < 0 ? [pair, ''] : [pair.slice(0, equals), pair.slice(equals + 1)];
  return [decoded(name).toString(), decoded(value)];
}

/** `text` has one character per byte. */
function decoded(text: string): Buffer {
  const bytes = text
    .replaceAll('+', ' ')
    .replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1');
}

/**
 * Collects the pairs; a repeated name gets an array of its values, in order. Any name, also `__proto__`, becomes an own
 * property.
 */
export function collectFields<Value>(
  pairs: Iterable<readonly [name: string, value: Value]>,
): Record<string, Value | Value[]> {
  const fields = Object.create(null) as Record<string, Value | Value[]>;
  for (const [name, value] of pairs) {
    const before = fields[name];
    if (before === undefined) fields[name] = value;
    else if (Array.isArray(before)) before.push(value);
    else fields[name] = [before, value];
  }
  return { ...fields };
}
