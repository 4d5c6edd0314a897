/** The input that a person is writing for one route, and the request that follows from it. */
import type { Signature, TensorSpec } from '../../status/live-types.js';
import { countOf, entriesOf, formatJson, readJson, textOf, type JsonNode } from '../parts/json-text.js';
import { schemaFields, type Field } from './schema-fields.js';
import type { CallBody, CallRequest } from './snippets.js';

export interface Draft {
  readonly mode: 'json' | 'form' | 'file';
  /** The JSON, also of the form. */
  readonly text: string;
  /** The values of the form's fields, by their names. */
  readonly values: Readonly<Record<string, string>>;
  readonly file: File | null;
  /** Name of the field in a multipart form; empty: the file is the body itself. */
  readonly formField: string;
  /** The form of a streamed answer: as the app sends it, as server-sent events, or as lines of JSON. */
  readonly accept: '*/*' | 'text/event-stream' | 'application/x-ndjson';
}

export function firstDraft(text: string): Draft {
  return { mode: 'json', text, values: {}, file: null, formField: '', accept: '*/*' };
}

/** The form takes over what the JSON says, as far as it has fields for it. */
export function withMode(draft: Draft, mode: Draft['mode'], fields: readonly Field[] | null): Draft {
  const values = mode === 'form' && fields !== null ? fieldValues(fields, draft.text) : draft.values;
  return { ...draft, mode, values };
}

/** The JSON follows the form as long as the form has no mistake. */
export function withValue(draft: Draft, fields: readonly Field[], name: string, value: string): Draft {
  const values = { ...draft.values, [name]: value };
  return { ...draft, values, text: textOfForm(fields, values).text ?? draft.text };
}

/** @returns null while the file is missing or the form has a mistake */
export function requestOf(
  draft: Draft,
  fields: readonly Field[] | null,
  url: string,
  needsKey: boolean,
): CallRequest | null {
  const body = bodyOf(draft);
  if (body === null) return null;
  if (draft.mode === 'form' && fields !== null && textOfForm(fields, draft.values).text === null) return null;
  const isStream = draft.accept !== '*/*';
  const headers: [string, string][] = [];
  if (body.kind === 'text') headers.push(['Content-Type', 'application/json']);
  if (body.kind === 'file') headers.push(['Content-Type', typeOf(body)]);
  if (isStream) headers.push(['Accept', draft.accept]);
  return { url, headers, body, needsKey, isStream };
}

function bodyOf({ mode, text, file, formField }: Draft): CallBody | null {
  if (mode !== 'file') return text.trim() === '' ? { kind: 'none' } : { kind: 'text', text };
  if (file === null) return null;
  const { name, type } = file;
  return formField === '' ? { kind: 'file', name, type } : { kind: 'form', field: formField, name, type };
}

/** Media type of a file. */
export function typeOf({ type }: { readonly type: string }): string {
  return type === '' ? 'application/octet-stream' : type;
}

/** The body for fetch. */
export function payloadOf({ mode, text, file, formField }: Draft): BodyInit | null {
  if (mode !== 'file') return text.trim() === '' ? null : text;
  if (file === null || formField === '') return file;
  const form = new FormData();
  form.append(formField, file, file.name);
  return form;
}

/** Null if the input is no object of which anything is known. */
export function fieldsOf(
  signature: Signature | null,
  schema: string,
  example: string,
): readonly Field[] | null {
  if (signature !== null) return signature.inputs.map(tensorField);
  const fields = schema === '' ? [] : schemaFields(schema);
  if (fields.length > 0) return fields;
  const { node } = readJson(example);
  if (node?.kind !== 'object' || countOf(node) === 0) return null;
  return entriesOf(node).map(([name, value]) => ({ name, kind: kindOf(value), hint: '', isOptional: false }));
}

function tensorField({ name, datatype, shape = [] }: TensorSpec): Field {
  const sizes = shape.map((size) => (size < 0 ? 'any' : String(size)));
  const hint = sizes.length === 0 ? datatype : `${datatype} [${sizes.join(', ')}]`;
  return { name, kind: 'json', hint, isOptional: false };
}

function kindOf(node: JsonNode): Field['kind'] {
  if (node.kind === 'string') return 'text';
  if (node.kind === 'number') return 'number';
  return node.kind === 'word' && node.raw !== 'null' ? 'boolean' : 'json';
}

/** The values that a JSON text has for these fields; empty for a field that it lacks. */
export function fieldValues(fields: readonly Field[], text: string): Draft['values'] {
  const { node } = readJson(text);
  const entries = new Map(node?.kind === 'object' ? entriesOf(node) : []);
  return Object.fromEntries(
    fields.map(({ name, kind }) => {
      const value = entries.get(name);
      if (value === undefined) return [name, ''];
      return [name, kind === 'text' && value.kind === 'string' ? textOf(value.raw) : formatJson(value)];
    }),
  );
}

/** The input as JSON, null with a mistake. A field that is empty, and no text, is left out. `problems`: by field. */
export function textOfForm(
  fields: readonly Field[],
  values: Draft['values'],
): { readonly text: string | null; readonly problems: Readonly<Record<string, string>> } {
  const problems: Record<string, string> = {};
  const properties: string[] = [];
  for (const { name, kind, isOptional } of fields) {
    const value = values[name] ?? '';
    if (value.trim() === '' && (kind !== 'text' || (isOptional && value === ''))) continue;
    const json = kind === 'text' ? JSON.stringify(value) : value;
    const { node, problem } = readJson(json);
    if (kind === 'number' && node?.kind !== 'number') problems[name] = 'This must be a number.';
    else if (problem !== null) problems[name] = problem;
    properties.push(`${JSON.stringify(name)}:${json}`);
  }
  if (Object.keys(problems).length > 0) return { text: null, problems };
  const { node } = readJson(`{${properties.join(',')}}`);
  return node === null
    ? { text: null, problems: { [fields[0]?.name ?? '']: 'It is nested too deeply.' } }
    : { text: formatJson(node), problems };
}
