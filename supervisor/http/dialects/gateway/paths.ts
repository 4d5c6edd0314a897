/** Where Banana's first clients (majors 2 to 4 of their SDKs) look for the platform's gateway. */

export type GatewayOperation =
  /** `waits`: the caller of `run` may get the result at once, without asking again. */
  { readonly is: 'start'; readonly waits: boolean } | { readonly is: 'check' } | { readonly is: 'feedback' };

const OPERATIONS: readonly (readonly [path: string, operation: GatewayOperation])[] = [
  ['/start/v2', { is: 'start', waits: false }],
  ['/start/v4', { is: 'start', waits: true }],
  ['/check/v2', { is: 'check' }],
  ['/check/v4', { is: 'check' }],
  ['/feedback/v2', { is: 'feedback' }],
];

/** The clients write a slash at the end; people do not. */
export const GATEWAY_PATHS: ReadonlyMap<string, GatewayOperation> = new Map(
  OPERATIONS.flatMap(([path, operation]) => [
    [path, operation],
    [`${path}/`, operation],
  ]),
);
