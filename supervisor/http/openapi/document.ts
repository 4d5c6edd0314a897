/** Makes one OpenAPI document of the operations that the dialects of a listener describe. */
import { ServeError } from '../../../protocol/errors.js';
import { ErrorReplies, type ErrorStyle } from './errors.js';
import { uniqueIds, type DescribedOperation } from './operation.js';

/** A dialect as the document shows it. */
export interface DescribedDialect extends ErrorStyle {
  readonly operations: Iterable<DescribedOperation>;
}

export interface DocumentParts {
  readonly title: string;
  /** The version of the server. */
  readonly version: string;
  /** In order of precedence: the first that describes a method of a path is the one that answers it. */
  readonly dialects: readonly DescribedDialect[];
  readonly keys: NeededKeys;
}

interface NeededKeys {
  /** The headers that may contain a key, beside a bearer token. */
  readonly headers: readonly string[];
  readonly toCall: boolean;
  readonly toManage: boolean;
}

/** Returns the whole document, to be sent as JSON. */
export function openApiDocument({ title, version, dialects, keys }: DocumentParts): object {
  const errors = new ErrorReplies();
  const uniqueId = uniqueIds();
  const paths: Record<string, Record<string, object>> = {};
  for (const { operation, dialect } of routesFirst([...answeredOperations(dialects)])) {
    (paths[operation.path] ??= {})[operation.method] = {
      operationId: uniqueId(operation.operationId),
      ...describe(operation),
      responses: {
        ...operation.responses,
        ...errors.repliesOf(operation.failures ?? NONE, dialect),
        ...errors.repliesOf(keyFailures(operation.auth, keys), dialect),
      },
      ...requirementsOf(operation.auth, keys),
    };
  }
  return {
    openapi: '3.1.0',
    info: { title, version, description: DESCRIPTION },
    paths,
    components: { ...errors.components(), ...securitySchemes(keys) },
  };
}

const NONE: readonly ServeError[] = [];

const DESCRIPTION =
  'What this server answers now. The inputs and outputs of a model are free until a worker has loaded its app.';

interface AnsweredOperation {
  readonly operation: DescribedOperation;
  readonly dialect: DescribedDialect;
}

/** Leaves out the operations whose requests an earlier dialect answers. */
function* answeredOperations(dialects: readonly DescribedDialect[]): Generator<AnsweredOperation> {
  const answered = new Set<string>();
  const owned = new Map<string, DescribedDialect>();
  for (const dialect of dialects)
    for (const operation of dialect.operations) {
      const { method, path } = operation;
      const isOwned = (owned.get(path) ?? dialect) !== dialect;
      if (isOwned || answered.has(`${method} ${path}`)) continue;
      answered.add(`${method} ${path}`);
      if (operation.ownsPath === true) owned.set(path, dialect);
      yield { operation, dialect };
    }
}

/** The routes of apps stand before everything else that the server answers. */
function routesFirst(operations: readonly AnsweredOperation[]): AnsweredOperation[] {
  const isRoute = ({ operation }: AnsweredOperation): boolean => operation.ownsPath === true;
  return [...operations.filter(isRoute), ...operations.filter((each) => !isRoute(each))];
}

function describe(operation: DescribedOperation): object {
  const { description, deprecated, isWebSocket, parameters, requestBody } = operation;
  return {
    description,
    ...(deprecated === true && { deprecated }),
    ...(isWebSocket === true && { 'x-websocket': true }),
    ...(parameters !== undefined && { parameters }),
    ...(requestBody !== undefined && { requestBody }),
  };
}

type Auth = DescribedOperation['auth'];

function needsKey(auth: Auth, { toCall, toManage }: NeededKeys): boolean {
  if (auth === 'none') return false;
  return auth === 'management' ? toManage : toCall;
}

const UNAUTHORIZED: readonly ServeError[] = [new ServeError('SERVE_UNAUTHORIZED')];

/** Returns the error of a request without a valid key; a dialect whose key is in the body has its own. */
function keyFailures(auth: Auth, keys: NeededKeys): readonly ServeError[] {
  return auth !== 'body' && needsKey(auth, keys) ? UNAUTHORIZED : NONE;
}

/** Returns the `security` of an operation: any one of these keys is enough. */
function requirementsOf(auth: Auth, keys: NeededKeys): { security?: readonly object[] } {
  if (!needsKey(auth, keys)) return {};
  const inHeaders = schemesOf(auth, keys).map(([name]) => ({ [name]: [] }));
  return { security: auth === 'body' ? [{}, ...inHeaders] : inHeaders };
}

/** Returns the component to which the requirements lead; none if no key is needed. */
function securitySchemes(keys: NeededKeys): { securitySchemes?: object } {
  const kinds = (['call', 'management'] as const).filter((auth) => needsKey(auth, keys));
  const schemes = kinds.flatMap((auth) => schemesOf(auth, keys));
  return schemes.length === 0 ? {} : { securitySchemes: Object.fromEntries(schemes) };
}

function schemesOf(auth: Auth, { headers }: NeededKeys): [name: string, scheme: object][] {
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
