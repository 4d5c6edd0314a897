/**
 * Fields of a form for an input that is a JSON object: one per tensor of the app's signature, else one per property of its
 * example. The form is another view of the JSON text, which stays the only truth.
 */
import type { Signature, TensorSpec } from '../../status/live-types.js';
import { formatJson, readJson, textOf, type JsonNode } from '../parts/json-text.js';

export interface Field {
  readonly name: string;
  /** `json`: any value, as JSON text. */
  readonly kind: 'text' | 'number' | 'boolean' | 'json';
  /** Such as `FP32 [-1, 8]`; may be empty. */
  readonly hint: string;
}

/** Values as they stand in the fields: texts as they are, all others as JSON text. */
export type FieldValues = Readonly<Record<string, string>>;

/** Null if the input is no object of which anything is known. */
export function fieldsOf(signature: Signature | null, example: string): readonly Field[] | null {
  if (signature !== null) return signature.inputs.map(tensorField);
  const { node } = readJson(example);
  if (node?.kind !== 'object' || node.entries.length === 0) return null;
  return node.entries.map(([name, value]) => ({ name, kind: kindOf(value), hint: '' }));
}

function tensorField({ name, datatype, shape = [] }: TensorSpec): Field {
  const sizes = shape.map((size) => (size < 0 ? 'any' : String(size)));
  return { name, kind: 'json', hint: sizes.length === 0 ? datatype : `${datatype} [${sizes.join(', ')}]` };
}

function kindOf(node: JsonNode): Field['kind'] {
  if (node.kind === 'string') return 'text';
  if (node.kind === 'number') return 'number';
  return node.kind === 'word' && node.raw !== 'null' ? 'boolean' : 'json';
}

/** The values that a JSON text has for these fields; empty for a field that it lacks. */
export function valuesOf(fields: readonly Field[], text: string): FieldValues {
  const { node } = readJson(text);
  const entries = new Map(node?.kind === 'object' ? node.entries : []);
  return Object.fromEntries(
    fields.map(({ name, kind }) => {
      const value = entries.get(name);
      if (value === undefined) return [name, ''];
      return [name, kind === 'text' && value.kind === 'string' ? textOf(value.raw) : formatJson(value)];
    }),
  );
}

export type FilledForm =
  | { readonly text: string; readonly problems: null }
  | { readonly text: null; readonly problems: Readonly<Record<string, string>> };

/** The input as JSON; a field that is empty, and no text, is left out. */
export function textOfForm(fields: readonly Field[], values: FieldValues): FilledForm {
  const problems: Record<string, string> = {};
  const properties: string[] = [];
  for (const { name, kind } of fields) {
    const value = values[name] ?? '';
    if (kind !== 'text' && value.trim() === '') continue;
    const json = kind === 'text' ? JSON.stringify(value) : value;
    const problem = problemOf(kind, json);
    if (problem !== null) problems[name] = problem;
    properties.push(`${JSON.stringify(name)}:${json}`);
  }
  if (Object.keys(problems).length > 0) return { text: null, problems };
  const { node } = readJson(`{${properties.join(',')}}`);
  return node === null
    ? { text: null, problems: { [fields[0]?.name ?? '']: 'It is nested too deeply.' } }
    : { text: formatJson(node), problems: null };
}

function problemOf(kind: Field['kind'], json: string): string | null {
  const { node, problem } = readJson(json);
  if (node === null) return kind === 'number' ? 'This must be a number.' : problem;
  return kind === 'number' && node.kind !== 'number' ? 'This must be a number.' : null;
}
