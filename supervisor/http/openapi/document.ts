/** Makes one OpenAPI document of the operations that the dialects of a listener describe. */
import { ServeError } from '../../../protocol/errors.js';
import { VERSION } from '../../version.js';
import type { NamedSchema } from './errors.js';
import { uniqueIds, type DescribedOperation } from './operation.js';

/** A dialect as the document shows it. */
export interface DescribedDialect {
  readonly operations: Iterable<DescribedOperation>;
  /** The status of an error in this dialect. */
  statusOf(error: ServeError): number;
  /** The body of its errors; null if it is not described. */
  readonly errorBody: NamedSchema | null;
}

export interface DescribedKeys {
  /** The headers that may contain a key, beside a bearer token. */
  readonly headers: readonly string[];
  readonly toCall: boolean;
  readonly toManage: boolean;
}

/**
 * Returns the whole document, to be sent as JSON, which leaves out what is undefined. `dialects`: in order of precedence: the first that describes a method of a
 * path is the one that answers it.
 */
export function openApiDocument(
  title: string,
  dialects: readonly DescribedDialect[],
  keys: DescribedKeys,
): object {
  const errors = new ErrorReplies();
  const uniqueId = uniqueIds();
  const paths: Record<string, Record<string, object>> = {};
  const schemas: Record<string, object> = {};
  for (const { operation, dialect } of answeredOperations(dialects)) {
    const { path, method, auth, isWebSocket, responses, failures = NONE } = operation;
    (paths[path] ??= {})[method] = {
      operationId: uniqueId(operation.operationId),
      description: operation.description,
      deprecated: operation.deprecated,
      'x-websocket': isWebSocket,
      parameters: operation.parameters,
      requestBody: operation.requestBody,
      responses: {
        ...responses,
        ...errors.repliesOf(failures, dialect),
        ...errors.repliesOf(keyFailures(auth, keys), dialect),
      },
      security: requirementsOf(auth, keys),
    };
    Object.assign(schemas, operation.schemas);
  }
  const shared = errors.components();
  return {
    openapi: '3.1.0',
    info: { title, version: VERSION, description: DESCRIPTION },
    paths,
    components: {
      responses: shared.responses,
      schemas: { ...schemas, ...shared.schemas },
      securitySchemes: securitySchemes(keys),
    },
  };
}

const NONE: readonly ServeError[] = [];

const DESCRIPTION =
  'What this server answers now. The inputs and outputs of a model are free until a worker has loaded its app.';

/** Leaves out the operations whose requests an earlier dialect answers; the routes of apps stand before everything else. */
function answeredOperations(dialects: readonly DescribedDialect[]) {
  const all: Record<'routes' | 'others', { operation: DescribedOperation; dialect: DescribedDialect }[]> = {
    routes: [],
    others: [],
  };
  const answered = new Set<string>();
  const owned = new Map<string, DescribedDialect>();
  for (const dialect of dialects)
    for (const operation of dialect.operations) {
      const { method, path } = operation;
      const isOwned = (owned.get(path) ?? dialect) !== dialect;
      if (isOwned || answered.has(`${method} ${path}`)) continue;
      answered.add(`${method} ${path}`);
      if (operation.ownsPath === true) owned.set(path, dialect);
      (operation.ownsPath === true ? all.routes : all.others).push({ operation, dialect });
    }
  return [...all.routes, ...all.others];
}

function needsKey(auth: DescribedOperation['auth'], { toCall, toManage }: DescribedKeys): boolean {
  if (auth === 'none') return false;
  return auth === 'management' ? toManage : toCall;
}

const UNAUTHORIZED: readonly ServeError[] = [new ServeError('SERVE_UNAUTHORIZED')];

/** Returns the error of a request without a valid key; a dialect whose key is in the body has its own. */
function keyFailures(auth: DescribedOperation['auth'], keys: DescribedKeys): readonly ServeError[] {
  return auth !== 'body' && needsKey(auth, keys) ? UNAUTHORIZED : NONE;
}

/** Returns the `security` of an operation: any one of these keys is enough. */
function requirementsOf(auth: DescribedOperation['auth'], keys: DescribedKeys): object[] | undefined {
  if (!needsKey(auth, keys)) return undefined;
  const inHeaders = schemesOf(auth, keys).map(([name]) => ({ [name]: [] }));
  return auth === 'body' ? [{}, ...inHeaders] : inHeaders;
}

/** Returns the component to which the requirements lead; undefined if no key is needed. */
function securitySchemes(keys: DescribedKeys): object | undefined {
  const kinds = (['call', 'management'] as const).filter((auth) => needsKey(auth, keys));
  const schemes = kinds.flatMap((auth) => schemesOf(auth, keys));
  return schemes.length === 0 ? undefined : Object.fromEntries(schemes);
}

function schemesOf(
  auth: DescribedOperation['auth'],
  { headers }: DescribedKeys,
): [name: string, scheme: object][] {
  const [prefix, description] =
    auth === 'management' ? ['management-', 'A key to manage models.'] : ['', 'A key to call models.'];
  return [
    [`${prefix}bearer`, { type: 'http', scheme: 'bearer', description }],
    ...headers.map((name): [string, object] => [
      `${prefix}${name}`,
      { type: 'apiKey', in: 'header', name, description },
    ]),
  ];
}

/** Describes the replies to errors: once for each status of a dialect, in the components of the document. */
class ErrorReplies {
  readonly #shared = new Map<
    string,
    { readonly errorBody: NamedSchema | null; readonly messages: Set<string> }
  >();
  /** The replies to lists that many operations have in common. */
  readonly #known = new Map<DescribedDialect, Map<readonly ServeError[], Record<string, object>>>();

  /** Returns references to the replies, by status. */
  repliesOf(failures: readonly ServeError[], style: DescribedDialect): Record<string, object> {
    const known = this.#known.get(style) ?? new Map<readonly ServeError[], Record<string, object>>();
    const replies = known.get(failures) ?? this.#share(failures, style);
    this.#known.set(style, known.set(failures, replies));
    return replies;
  }

  #share(failures: readonly ServeError[], style: DescribedDialect): Record<string, object> {
    const replies: Record<string, object> = {};
    for (const failure of failures) {
      const status = style.statusOf(failure);
      const name = `${style.errorBody?.name ?? 'Error'}${status}`;
      const shared = this.#shared.get(name) ?? { errorBody: style.errorBody, messages: new Set() };
      this.#shared.set(name, shared);
      shared.messages.add(failure.message);
      replies[status] = { $ref: `#/components/responses/${name}` };
    }
    return replies;
  }

  /** Returns the components to which the references lead. */
  components(): { responses: Record<string, object>; schemas: Record<string, object> } {
    const responses: Record<string, object> = {};
    const schemas: Record<string, object> = {};
    for (const [name, { errorBody, messages }] of this.#shared) {
      responses[name] = { description: [...messages].join(' '), ...contentOf(errorBody) };
      if (errorBody !== null) schemas[errorBody.name] = errorBody.schema;
    }
    return { responses, schemas };
  }
}

function contentOf(body: NamedSchema | null): object {
  if (body === null) return {};
  return { content: { 'application/json': { schema: { $ref: `#/components/schemas/${body.name}` } } } };
}
