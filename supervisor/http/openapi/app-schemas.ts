/**
 * The JSON Schema that an app has given for an input or an output, as the document has it. One that refers to itself or to
 * its `$defs` becomes components, since a reference leads from the root of the document.
 */
import type { JsonSchema } from './schemas.js';

interface AppSchema {
  readonly schema: JsonSchema;
  /** The components to which the schema refers, by name. */
  readonly components: Readonly<Record<string, object>>;
}

const COMPONENTS = '#/components/schemas/';

/** `name`: that of the component if it becomes one, and the beginning of the names of its `$defs`. Null if `text` is no schema. */
export function appSchema(text: string, name: string): AppSchema | null {
  try {
    const given: unknown = JSON.parse(text);
    if (typeof given !== 'object' || given === null || Array.isArray(given)) return null;
    return schemaOf(given as Readonly<Record<string, unknown>>, name);
  } catch {
    return null; // no JSON, or too deep
  }
}

function schemaOf(
  { $schema: _dialect, $id: _id, $defs: defs = {}, ...root }: Readonly<Record<string, unknown>>,
  name: string,
): AppSchema {
  const defName = (key: string): string => `${name}.${key.replace(/[^\w.-]/g, '_')}`;
  const rewrite = new Rewriting((ref) => {
    const [, key, rest = ''] = /^#\/\$defs\/([^/]+)(.*)$/.exec(ref) ?? [];
    if (key !== undefined) return COMPONENTS + defName(unescaped(key)) + rest;
    return ref === '#' || ref.startsWith('#/') ? COMPONENTS + name + ref.slice(1) : ref;
  });
  const schema = rewrite.schema(root) as JsonSchema;
  const components = Object.fromEntries(
    Object.entries(defs as object).map(([key, def]) => [defName(key), rewrite.schema(def) as object]),
  );
  if (!rewrite.found) return { schema, components: {} };
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

/** Copies schemas with other references. */
class Rewriting {
  readonly #refOf: (ref: string) => string;
  /** Whether there was a reference. */
  found = false;

  constructor(refOf: (ref: string) => string) {
    this.#refOf = refOf;
  }

  schema(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((each) => this.schema(each));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, this.#member(key, member)]));
  }

  #member(key: string, member: unknown): unknown {
    if (key === '$ref' && typeof member === 'string') {
      this.found = true;
      return this.#refOf(member);
    }
    if (DATA.has(key)) return member;
    if (!NAMED_SCHEMAS.has(key)) return this.schema(member);
    return Object.fromEntries(
      Object.entries(member as object).map(([name, one]) => [name, this.schema(one)]),
    );
  }
}
