/** The fields of a form, those of a JSON Schema, and the wrong values of an input that the server has checked with it. */

/**
 * A field of the form for an input that is a JSON object: one per tensor of the app's signature, else one per property of its
 * schema, else of its example. The form is another view of the JSON text, which stays the only truth. Texts stand in their fields as they are, all
 * other values as JSON text.
 */
export interface Field {
  readonly name: string;
  /** `json`: any value, as JSON text. */
  readonly kind: 'text' | 'number' | 'boolean' | 'json';
  /** Such as `FP32 [-1, 8]`; may be empty. */
  readonly hint: string;
  /** Whether an empty text leaves the field out, too. */
  readonly isOptional: boolean;
}

type Schema = Readonly<Record<string, unknown>>;

const KINDS: Readonly<Record<string, Field['kind']>> = {
  string: 'text',
  number: 'number',
  integer: 'number',
  boolean: 'boolean',
};

/** One field per property of an object; none for any other schema. */
export function schemaFields(text: string): Field[] {
  const root = objectIn(text);
  const { properties = {}, required = [] } = resolved(root, root) as {
    properties?: Readonly<Record<string, Schema>>;
    required?: readonly string[];
  };
  return Object.entries(properties).map(([name, given]) => {
    const { type, default: usual, enum: values } = { ...resolved(given, root), ...withoutRef(given) };
    const isOptional = !required.includes(name);
    const kind = KINDS[String(type)] ?? 'json';
    const notes = [
      Array.isArray(values) ? values.map(String).join(' | ') : kind,
      usual !== undefined && usual !== null ? `default ${JSON.stringify(usual)}` : isOptional && 'optional',
    ];
    return { name, kind, hint: notes.filter(Boolean).join(', '), isOptional };
  });
}

/** Most references that lead to each other. */
const MAX_STEPS = 8;

/** The schema behind its references; of a choice between one and null, that one. */
function resolved(given: Schema, root: Schema): Schema {
  let schema = given;
  for (let steps = 0; steps < MAX_STEPS; steps += 1) {
    const { $ref, anyOf } = schema;
    const others = Array.isArray(anyOf) ? (anyOf as Schema[]).filter(({ type }) => type !== 'null') : [];
    const [only] = others;
    if (typeof $ref === 'string') schema = at($ref, root);
    else if (only !== undefined && others.length === 1) schema = only;
    else break;
  }
  return schema;
}

function withoutRef({ $ref: _ref, anyOf: _anyOf, ...rest }: Schema): Schema {
  return rest;
}

/** The part of the schema at a JSON pointer (RFC 6901); one that leads nowhere allows everything. */
function at(ref: string, root: Schema): Schema {
  let found: unknown = root;
  for (const part of ref.split('/').slice(1))
    found = (Object(found) as Schema)[decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')];
  return Object(found) as Schema;
}

/** The messages of an error's issues, by the field that each begins at; empty for any other answer. */
export function issuesIn(answer: string): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  const { issues = [] } = Object(objectIn(answer)['error']) as {
    issues?: readonly { readonly path: readonly (string | number)[]; readonly message: string }[];
  };
  for (const { path, message } of issues) {
    const [name, ...rest] = path;
    if (name === undefined) continue;
    const text = rest.length === 0 ? message : `${rest.join('.')}: ${message}`;
    found[name] = found[name] === undefined ? text : `${found[name]}; ${text}`;
  }
  return found;
}

/** The JSON object in a text; an empty one for any other text. */
function objectIn(text: string): Schema {
  try {
    return Object(JSON.parse(text)) as Schema;
  } catch {
    return {};
  }
}
