/** The part of Standard Schema (standardschema.dev) that the server uses. Zod, valibot and arktype have it. */

/* eslint-disable @typescript-eslint/no-explicit-any -- a schema of any types */

/**
 * A schema: `Input` is what it takes, `Output` what it makes of it, with defaults and transforms. Those of zod, valibot
 * and arktype are such; so is an object that checks by itself.
 * @example
 * export const input: StandardSchema<string> = {
 *   '~standard': {
 *     version: 1,
 *     vendor: 'own',
 *     validate: (value) => (typeof value === 'string' ? { value } : { issues: [{ message: 'expected a text' }] }),
 *   },
 * };
 */
export interface StandardSchema<Input = any, Output = any> {
  readonly '~standard': {
    readonly version: 1;
    /** The name of its library. */
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

type SchemaResult<Output = unknown> =
  { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly SchemaIssue[] };

/** A wrong value, as a library describes it. */
export interface SchemaIssue {
  readonly message: string;
  /** Keys, or objects that have them; left out for the value itself. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The value that a schema takes: a client's input, or what a function returns for an `output`. */
export type SchemaInput<S extends StandardSchema> = NonNullable<S['~standard']['types']>['input'];

/** The value that a schema makes: what a function gets as its input, or a client as its answer. */
export type SchemaOutput<S extends StandardSchema> = NonNullable<S['~standard']['types']>['output'];

/** The value that a function may return for a schema: where that takes numbers, a typed array too. */
export type Returned<T> = T extends readonly number[]
  ? T | NumberArray
  : T extends readonly unknown[] | { readonly [key: string]: unknown }
    ? { [K in keyof T]: Returned<T[K]> }
    : T;

type NumberArray =
  | Int8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array
  | Uint8ClampedArray;

/** A schema may be a function. Never throws. */
export function isSchema(value: unknown): value is StandardSchema {
  try {
    const isOne = typeof value === 'object' || typeof value === 'function';
    return isOne && value !== null && '~standard' in value;
  } catch {
    return false; // a Proxy may refuse even this
  }
}

/** The schemas of a route. */
export interface RouteSchemas<
  In extends StandardSchema = StandardSchema,
  Out extends StandardSchema = StandardSchema,
> {
  /** Checks the input before the function runs, which gets what the schema returns. */
  readonly input?: In | undefined;
  /** Checks the answer; the client gets what the schema returns. */
  readonly output?: Out | undefined;
}
