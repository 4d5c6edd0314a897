/**
 * Schemas of JSON: of an app's example, of the tensors of its signature, and those that it gives itself. One that refers to
 * itself or to its `$defs` becomes components, since a reference leads from the root of the document.
 */
import type { TensorSpec } from '../../../protocol/wire/messages.js';
import { isObject } from '../../options/read-objects.js';

/** A schema without any keyword allows every value. */
export interface JsonSchema {
  readonly type?: 'string' | 'number' | 'integer' | 'boolean' | 'object' | 'array' | 'null';
  readonly format?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
  readonly anyOf?: readonly JsonSchema[];
  readonly $ref?: string;
}

/** A schema that allows every value. */
export const FREE: JsonSchema = {};

export const BYTES: JsonSchema = { type: 'string', format: 'binary' };

export const TEXT: JsonSchema = { type: 'string' };

/** Describes an object that has all of these properties, and may have others. */
export function objectOf(
  properties: Readonly<Record<string, JsonSchema>>,
  required: readonly string[] = Object.keys(properties),
): JsonSchema {
  return { type: 'object', properties, required };
}

/** Deeper values of an example, and further properties, are allowed without a description. */
const MAX_DEPTH = 8;
const MAX_PROPERTIES = 200;

/** Number of properties that may still be described. */
interface Room {
  left: number;
}

/** Infers a schema from an example, a value of JSON: a guess, so no property is required, and others are allowed. */
export function inferSchema(example: unknown): JsonSchema {
  return commonSchema([example], 0, { left: MAX_PROPERTIES });
}

/** Describes all of these values; they are free if they differ in kind, and where one is null. */
function commonSchema(values: readonly unknown[], depth: number, room: Room): JsonSchema {
  const [kind, ...others] = new Set(values.map(kindOf));
  if (kind === undefined || others.length > 0 || depth > MAX_DEPTH) return FREE;
  if (kind === 'null') return FREE;
  if (kind === 'array')
    return { type: kind, items: commonSchema((values as unknown[][]).flat(), depth + 1, room) };
  if (kind === 'object') return commonObject(values as object[], depth, room);
  return { type: kind };
}

function commonObject(objects: readonly object[], depth: number, room: Room): JsonSchema {
  const byName = new Map<string, unknown[]>();
  for (const [name, value] of objects.flatMap((object) => Object.entries(object) as [string, unknown][])) {
    const values = byName.get(name);
    if (values === undefined) byName.set(name, [value]);
    else values.push(value);
  }
  const described = [...byName].slice(0, room.left);
  room.left -= described.length;
  const properties = described.map(
    ([name, values]) => [name, commonSchema(values, depth + 1, room)] as const,
  );
  return { type: 'object', properties: Object.fromEntries(properties), additionalProperties: true };
}

function kindOf(value: unknown): 'null' | 'array' | 'object' | 'string' | 'number' | 'boolean' {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : (typeof value as 'object' | 'string' | 'number' | 'boolean');
}

/** A tensor of more dimensions is not described. */
const MAX_DIMENSIONS = 32;

/** All that the workers know, which are those of the Open Inference Protocol V2 and BF16. */
export const DATATYPE: JsonSchema = {
  ...TEXT,
  enum: [
    ...['BOOL', 'UINT8', 'UINT16', 'UINT32', 'UINT64', 'INT8', 'INT16', 'INT32', 'INT64'],
    ...['FP16', 'FP32', 'FP64', 'BF16', 'BYTES'],
  ],
};

/** Describes tensors by name as nested lists: the inputs of every app, and the outputs of a model without code. */
export function listedTensors(specs: readonly TensorSpec[]): JsonSchema {
  return named(specs, nestedLists);
}

/** The outputs of an app of code: it may return lists, a typed array, which has no shape, or a `Tensor`. */
export function outputTensors(specs: readonly TensorSpec[]): JsonSchema {
  return named(specs, (spec) => {
    const flat = listOf(elementOf(spec));
    const tensor = objectOf({ datatype: DATATYPE, shape: listOf({ type: 'integer' }), data: flat });
    if (spec.shape === undefined) return FREE;
    return { anyOf: spec.shape.length === 1 ? [flat, tensor] : [nestedLists(spec), flat, tensor] };
  });
}

function named(specs: readonly TensorSpec[], schemaOf: (spec: TensorSpec) => JsonSchema): JsonSchema {
  if (specs.length === 0) return FREE;
  return objectOf(Object.fromEntries(specs.map((spec) => [spec.name, schemaOf(spec)])));
}

function nestedLists(spec: TensorSpec): JsonSchema {
  if (spec.shape === undefined || spec.shape.length > MAX_DIMENSIONS) return FREE;
  return spec.shape.reduceRight((items, size) => listOf(items, size), elementOf(spec));
}

/** `size`: -1 for any. */
function listOf(items: JsonSchema, size = -1): JsonSchema {
  return { type: 'array', items, ...(size < 0 ? {} : { minItems: size, maxItems: size }) };
}

function elementOf({ datatype }: TensorSpec): JsonSchema {
  if (datatype === 'BOOL') return { type: 'boolean' };
  if (datatype === 'BYTES') return TEXT;
  return { type: /^U?INT/.test(datatype) ? 'integer' : 'number' };
}

const COMPONENTS = '#/components/schemas/';

/** The schema that an app has given. `name`: that of the component if it becomes one, and the beginning of the names of its `$defs`. Null if `text` is no schema. */
export function appSchema(text: string, name: string): ReturnType<typeof schemaOf> | null {
  try {
    const given: unknown = JSON.parse(text);
    return isObject(given) ? schemaOf(given, name) : null;
  } catch {
    return null; // no JSON, or too deep
  }
}

/** `components`: those to which the schema refers, by name. */
function schemaOf(
  { $schema: _dialect, $id: _id, $defs: defs = {}, ...root }: Readonly<Record<string, unknown>>,
  name: string,
): { readonly schema: JsonSchema; readonly components: Readonly<Record<string, object>> } {
  let refers = false as boolean;
  const defName = (key: string): string => `${name}.${key.replace(/[^\w.-]/g, '_')}`;
  const newRef = (ref: string): string => {
    refers = true;
    const [, key, rest = ''] = /^#\/\$defs\/([^/]+)(.*)$/.exec(ref) ?? [];
    if (key !== undefined) return COMPONENTS + defName(unescaped(key)) + rest;
    return ref === '#' || ref.startsWith('#/') ? COMPONENTS + name + ref.slice(1) : ref;
  };
  const schema = rewritten(root, newRef) as JsonSchema;
  const components = Object.fromEntries(
    Object.entries(defs as object).map(([key, def]) => [defName(key), rewritten(def, newRef) as object]),
  );
  if (!refers) return { schema, components: {} };
  return { schema: { $ref: COMPONENTS + name }, components: { [name]: schema, ...components } };
}

/** Decodes a part of a JSON pointer in a URL (RFC 6901 section 6). */
function unescaped(part: string): string {
  return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
}

/** Keywords whose members are schemas by names of any kind. */
const NAMED_SCHEMAS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  '$defs',
]);

/** Keywords whose values are data. */
const DATA: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples', 'example']);

/** Copies a schema with other references. */
function rewritten(value: unknown, newRef: (ref: string) => string): unknown {
  if (Array.isArray(value)) return value.map((each) => rewritten(each, newRef));
  if (typeof value !== 'object' || value === null) return value;
  const member = (key: string, one: unknown): unknown => {
    if (key === '$ref' && typeof one === 'string') return newRef(one);
    if (DATA.has(key)) return one;
    return NAMED_SCHEMAS.has(key)
      ? mapped(one as object, (_, each) => rewritten(each, newRef))
      : rewritten(one, newRef);
  };
  return mapped(value, member);
}

function mapped(object: object, change: (key: string, value: unknown) => unknown): object {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(key, value)]));
}
