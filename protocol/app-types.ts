/** The types of an app's function for those who call it. They follow from the type of the app's module, without a cast. */

/**
 * Limits of one call.
 * @example
 * const options: CallOptions = { timeoutMs: 5000, signal: AbortSignal.timeout(5000) };
 */
export interface CallOptions {
  /** Gives the call up when it is aborted: it loses its place in the queue, and the app's `ctx.signal` is aborted. */
  readonly signal?: AbortSignal | undefined;
  /** Longest time until the answer, in ms; for a stream until its end. Default: no limit but the model's own. */
  readonly timeoutMs?: number | undefined;
}

type AnyFunction = (...args: never[]) => unknown;

/** The function of an app that exports one by name, or as part of its default export. */
type InferenceOf<App> = App extends { readonly inference: infer F extends AnyFunction }
  ? F
  : App extends { readonly default: { readonly inference: infer F extends AnyFunction } }
    ? F
    : App extends { readonly inferenceBatch: infer B extends AnyFunction }
      ? OneOf<B>
      : App extends { readonly default: { readonly inferenceBatch: infer B extends AnyFunction } }
        ? OneOf<B>
        : (input: unknown) => unknown;

/** The function of one entry of a batch. */
type OneOf<B extends AnyFunction> = (
  input: Parameters<B>[0] extends readonly (infer I)[] ? I : unknown,
) => Awaited<ReturnType<B>> extends readonly (infer O)[] ? O : unknown;

/**
 * An app's answer as the caller gets it: a stream of values for iterators, the body of a response, else the value. Before
 * TypeScript 5.6 `AsyncIterable` has one parameter.
 */
type AnswerOf<Output> =
  Awaited<Output> extends infer O
    ? O extends Response
      ? unknown
      : O extends AsyncIterable<infer Item> | Iterator<infer Item, unknown, never>
        ? AsyncIterableIterator<Awaited<Item>>
        : O extends Error
          ? never
          : O
    : never;

/** The schema that an app exports under this name (Standard Schema); `unknown` if it has none. */
type SchemaOf<App, Name extends string> = App extends { readonly [N in Name]: infer S }
  ? S
  : App extends { readonly default: { readonly [N in Name]: infer S } }
    ? S
    : unknown;

interface Schema<Input, Output> {
  readonly '~standard': {
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** The app's input as the first argument of a call, which may be left out if it may be for the app. */
export type InputOf<App> =
  SchemaOf<App, 'input'> extends Schema<infer I, unknown> ? [input: I] : InputOfFunction<App>;

type InputOfFunction<App> =
  Parameters<InferenceOf<App>> extends [infer I, ...unknown[]]
    ? [input: I]
    : Parameters<InferenceOf<App>> extends [(infer I)?, ...unknown[]]
      ? [input?: I]
      : [input?: unknown];

/** The answer of the app's function; `unknown` for an app of another kind. */
export type OutputOf<App> =
  SchemaOf<App, 'output'> extends Schema<unknown, infer O> ? O : AnswerOf<ReturnType<InferenceOf<App>>>;
