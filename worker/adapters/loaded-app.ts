/** The interface of an app for the run loop. Each file in `adapters/` implements it for one way of writing an app. */
import type { LoadedInfo, Metric, StartSpec } from '../../protocol/wire/messages.js';
import type { InputWishes } from '../api/route-options.js';
import type { RouteSchemas } from '../api/standard-schema.js';
import type { Fields } from '../../protocol/values/tensor.js';
import type { CallInfo, InitContext } from '../api/types.js';
import type { DescribedApp } from '../formats/body-format.js';

/** Facts about the model for an app, and the function that sends its metrics. */
export interface Surroundings {
  readonly spec: StartSpec;
  /** Metrics of calls must be sent before the endings of the calls. */
  sendMetrics(metrics: readonly Metric[]): void;
}

/** Maximum calls at a time for a route whose batch function sets no limit; the operator does. */
export const ANY_BATCH = 0xffff;

/** The record of the wire, with the example as the value that the app gives. */
export interface OwnDescription
  extends Omit<LoadedInfo, 'example' | 'shutdown' | 'signature' | 'concurrency'>, DescribedApp {
  /** A sample call that runs before the worker is ready. */
  readonly example: { readonly route: string; readonly input: unknown } | null;
  /** Calls that the app takes at the same time; the operator may allow fewer. */
  readonly concurrency: number;
}

/** A run of a model before any call. */
export interface WarmUp {
  /** For the log of a warm-up that takes long: what it runs, and the cure. */
  readonly advice: string;
  /** Never rejects. */
  run(ctx: Pick<InitContext, 'log' | 'worker'>): Promise<void>;
}

/** The property of exports that is their warm-up; only loaders of files that are no code set it. */
export const WARM_UP = Symbol('warm-up');

/** Exports of a module, or an object with the same names (`init`, `inference`, `config`, ...) of a file that is none. */
export type Exports = Fields & { readonly [WARM_UP]?: WarmUp };

export interface LoadedApp {
  readonly description: OwnDescription;
  /** Kinds of body that a route accepts in addition to those that every route accepts. */
  wishes(route: string): InputWishes;
  /** The schemas of a route; left out by apps that have none. */
  schemas?(route: string): RouteSchemas | undefined;
  /** Name of the function in the role of `init`, for error messages; `init` if left out. */
  readonly initStep?: string;
  init(ctx: InitContext, surroundings: Surroundings): unknown;
  /**
   * Answers one call with a value that `reply/` encodes, or a `Reply`; may return a promise. For a WebSocket route
   * `input` is its `WebSocketConnection`, and the return value is ignored.
   */
  handle(route: string, input: unknown, ctx: CallInfo): unknown;
  /**
   * Answers two or more calls of one route together, for routes that allow it. Returns an array, or a promise of one,
   * with a result of `handle` or an Error for each input; a throw answers none of them.
   */
  handleBatch?(route: string, inputs: readonly unknown[], ctxs: readonly CallInfo[]): unknown;
  /** True if the app allows inputs to run again when `handleBatch` throws. */
  readonly repeatable: boolean;
  /** Runs after `init`, unless a worker of this model has died or hung in it; left out if there is none. */
  readonly warmUp?: WarmUp;
  /** Runs before the worker ends; left out if the app has nothing to do then. */
  shutdown?(): unknown;
}

/** The most calls of a route that its batch function takes together; 1 without one. */
export function maxBatchOf({ description }: LoadedApp, route: string): number {
  return description.routes.find(({ path }) => path === route)?.maxBatch ?? 1;
}
