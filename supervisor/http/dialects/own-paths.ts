/** The server's own paths, which no call may have. */
import { HEALTH_PATHS, POTASSIUM_PREFIX, STATUS_PATH } from '../../../protocol/reserved-paths.js';

export const WARM_UP_PATH = `${POTASSIUM_PREFIX}/warmup`;

export type GatewayOperation =
  /** `waits`: the caller may get the result in the answer to its start, without asking again. */
  { readonly is: 'start'; readonly waits: boolean } | { readonly is: 'check' } | { readonly is: 'feedback' };

const OPERATIONS: readonly (readonly [path: string, operation: GatewayOperation])[] = [
  ['/start/v2', { is: 'start', waits: false }],
  ['/start/v3', { is: 'start', waits: true }],
  ['/start/v4', { is: 'start', waits: true }],
  ['/check/v2', { is: 'check' }],
  ['/check/v3', { is: 'check' }],
  ['/check/v4', { is: 'check' }],
  ['/feedback/v2', { is: 'feedback' }],
];

/**
 * Where Banana's first clients (majors 2 to 4 of their SDKs; v3 is that of Go and of Python 3.0.1) look for the
 * platform's gateway.
 * The clients write a slash at the end; people do not.
 */
export const GATEWAY_PATHS: ReadonlyMap<string, GatewayOperation> = new Map(
  OPERATIONS.flatMap(([path, operation]) => [
    [path, operation],
    [`${path}/`, operation],
  ]),
);

/** Every path of the server's own, with the methods that it takes as an `Allow` header lists them. */
export const OWN_PATHS: ReadonlyMap<string, string> = new Map([
  ...[...HEALTH_PATHS, STATUS_PATH].map((path) => [path, 'GET, HEAD'] as const),
  [WARM_UP_PATH, 'GET, HEAD, POST'],
  ...[...GATEWAY_PATHS.keys()].map((path) => [path, 'POST'] as const),
]);
