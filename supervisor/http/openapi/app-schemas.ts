/**
 * The JSON Schema that an app has given for an input or an output, as the document has it. One that refers to itself or to
 * its `$defs` becomes components, since a reference leads from the root of the document.
 */
import { isObject } from '../../options/read-objects.js';
import type { JsonSchema } from './schemas.js';

const COMPONENTS = '#/components/schemas/';

/** `name`: that of the component if it becomes one, and the beginning of the names of its `$defs`. Null if `text` is no schema. */
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
