/** Describes the keys that requests need. */
import { ServeError } from '../../../protocol/errors.js';
import type { DescribedOperation } from './operation.js';

export interface NeededKeys {
  /** The headers that may contain a key, beside a bearer token. */
  readonly headers: readonly string[];
  readonly toCall: boolean;
  readonly toManage: boolean;
}

type Auth = DescribedOperation['auth'];

function needsKey(auth: Auth, { toCall, toManage }: NeededKeys): boolean {
  if (auth === 'none') return false;
  return auth === 'management' ? toManage : toCall;
}

const UNAUTHORIZED: readonly ServeError[] = [new ServeError('SERVE_UNAUTHORIZED')];
const NONE: readonly ServeError[] = [];

/** Returns the error of a request without a valid key; a dialect whose key is in the body has its own. */
export function keyFailures(auth: Auth, keys: NeededKeys): readonly ServeError[] {
  return auth !== 'body' && needsKey(auth, keys) ? UNAUTHORIZED : NONE;
}

/** Returns the `security` of an operation: any one of these keys is enough. */
export function requirementsOf(auth: Auth, keys: NeededKeys): { security?: readonly object[] } {
  if (!needsKey(auth, keys)) return {};
  const inHeaders = schemesOf(auth, keys).map(([name]) => ({ [name]: [] }));
  return { security: auth === 'body' ? [{}, ...inHeaders] : inHeaders };
}

/** Returns the component to which the requirements lead; none if no key is needed. */
export function securitySchemes(keys: NeededKeys): { securitySchemes?: object } {
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
