/** The types of a model as a function, for programs. They follow from the type of the app's module, without a cast. */
import type { EventEmitter } from 'node:events';
import type { ServeError } from '../../protocol/errors.js';
import type { AnyTensor, Datatype, TensorData } from '../../protocol/values/tensor.js';
import type { ModelStatus } from '../models/model-status.js';

/**
 * Options of one call of a function.
 * @example
 * const options: FunctionCallOptions = { timeoutMs: 5000, onProgress: (fraction) => console.log(fraction) };
 */
export interface FunctionCallOptions {
  /** Gives the call up when it is aborted: it loses its place in the queue, and the app's `ctx.signal` is aborted. */
  readonly signal?: AbortSignal | undefined;
  /** Longest time until the answer, in ms; for a stream until its end. Default: no limit but the model's own. */
  readonly timeoutMs?: number | undefined;
  /** Gets what the app reports with `ctx.progress`, at most four times a second. */
  readonly onProgress?: ((fraction: number, text: string) => void) | undefined;
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

/** An app's answer as the caller gets it: a stream of values for iterators, the body of a response, else the value. */
export type AnswerOf<Output> =
  Awaited<Output> extends infer O
    ? O extends Response
      ? unknown
      : O extends AsyncIterator<infer Item, unknown, never> | Iterator<infer Item, unknown, never>
        ? AsyncIterableIterator<Awaited<Item>>
        : O extends Error
          ? never
          : O
    : never;

/**
 * A tensor of a model without code: one of one dimension is its data alone, unless their class does not say its datatype.
 * @example
 * const values: TensorValue[] = [Float32Array.of(0, 1), new Tensor('FP32', [1, 2], Float32Array.of(0, 1))];
 */
export type TensorValue = AnyTensor | TensorData[Exclude<Datatype, 'BOOL' | 'FP16' | 'BF16' | 'BYTES'>];

/**
 * A model without code, as an app.
 * @example
 * const digits = await supervise<OnnxModel>('./digits.onnx');
 * const { probabilities } = await digits({ image: new Tensor('FP32', [1, 64], new Float32Array(64)) });
 */
export interface OnnxModel {
  inference(inputs: Readonly<Record<string, TensorValue>>): Readonly<Record<string, TensorValue>>;
}

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

/** The arguments of a call: the app's input, which may be left out if it may be for the app, and options. */
type ArgumentsOf<App> =
  SchemaOf<App, 'input'> extends Schema<infer I, unknown>
    ? [input: I, options?: FunctionCallOptions]
    : ArgumentsOfFunction<App>;

type ArgumentsOfFunction<App> =
  Parameters<InferenceOf<App>> extends [infer I, ...unknown[]]
    ? [input: I, options?: FunctionCallOptions]
    : Parameters<InferenceOf<App>> extends [(infer I)?, ...unknown[]]
      ? [input?: I, options?: FunctionCallOptions]
      : [input?: unknown, options?: FunctionCallOptions];

/** The answer of the app's function; `unknown` for an app of another kind. */
export type OutputOf<App> =
  SchemaOf<App, 'output'> extends Schema<unknown, infer O> ? O : AnswerOf<ReturnType<InferenceOf<App>>>;

/**
 * Events of the workers of a function.
 * @example
 * const model = await supervise('./embed.ts');
 * model.events.on('death', ({ worker, how }) => console.error(worker, how));
 */
export interface FunctionEvents {
  /** A worker is ready. */
  ready: [{ readonly worker: number; readonly startMs: number }];
  /** A worker died that nobody has asked to end; another one starts. */
  death: [{ readonly worker: number; readonly pid: number; readonly how: string }];
  /** No worker can start any more, or none for now: calls are refused with this error. */
  failing: [ServeError];
}

/**
 * A model as a function. Types follow from that of the app's module.
 * @example
 * const embed: ModelFunction = await supervise('./embed.ts');
 * const answer = await embed({ text: 'hello' });
 * await embed.close();
 */
export interface ModelFunction<App = unknown> {
  (...args: ArgumentsOf<App>): Promise<OutputOf<App>>;
  /** The function of another route of the app, such as those of a Potassium app. */
  route(path: string): (input: unknown, options?: FunctionCallOptions) => Promise<unknown>;
  /** The model as `/status` of a server shows it. */
  status(): ModelStatus;
  /** The metrics of the model, and those of its app, as Prometheus reads them. */
  metrics(): Promise<string>;
  readonly events: EventEmitter<FunctionEvents>;
  /** Finishes the accepted calls, then ends the workers. Rejects if it was called before. */
  close(): Promise<void>;
  /** As `close`; does nothing after it. */
  [Symbol.asyncDispose](): Promise<void>;
}
