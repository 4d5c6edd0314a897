/** `application/x-www-form-urlencoded` bodies, for apps that ask for them; for others such bodies are read as JSON. */
import type { InputFormat } from './body-format.js';
import { collectFields } from './fields.js';
import { formPairs } from './form-pairs.js';

/** Every value is text; a repeated name becomes an array. Broken percent escapes stay unchanged. */
export function readForm(body: Buffer): Record<string, string | string[]> {
  return collectFields(formPairs(body).map(([name, value]) => [name, value.toString()] as const));
}

export const FORMAT: InputFormat = { itemType: 'application/x-www-form-urlencoded', read: readForm };
