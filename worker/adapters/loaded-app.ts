/**
 * The one shape the run loop knows. Each file in `adapters/` turns one way of writing an app into it.
 */
import type { Metric, Route, StartSpec } from '../../protocol/wire/messages.js';
import type { InputWishes } from '../api/input-wishes.js';
import type { CallInfo } from '../api/call-info.js';
import type { InitContext } from '../api/types.js';

/** What an app may know of its model, and how it tells what it has measured. */
export interface Surroundings {
  readonly spec: StartSpec;
  /** Metrics of calls must be told before the ends of the calls. */
  sendMetrics(metrics: readonly Metric[]): void;
}

/** Most calls at a time for a route with a batch function, which sets no bound of its own: the operator does. */
export const ANY_BATCH = 0xffff;

export interface LoadedApp {
  readonly routes: readonly Route[];
  readonly modelOptions: Readonly<Record<string, unknown>>;
  /** Kinds of body that a route has asked for, besides those that every route takes. */
  wishes(route: string): InputWishes;
  /** Called once before `init`; left out by apps that need to know no more than that tells. */
  surround?(surroundings: Surroundings): void;
  /** What `init` is called where it is said that it threw; `init` if left out. */
  readonly initStep?: string;
  init(ctx: InitContext): unknown;
  /**
   * Answers one call; the value is what `reply/` encodes, or a `Reply`. May return a promise. For a WebSocket route
   * `input` is its `WebSocketConnection`, and what is returned is ignored.
   */
  handle(route: string, input: unknown, ctx: CallInfo): unknown;
  /**
   * Answers two or more calls of one route together, for routes that take so many: an array, or a promise of one, that
   * has for each input what `handle` returns, or an Error; a throw is an answer to none of them.
   */
  handleBatch?(route: string, inputs: readonly unknown[], ctxs: readonly CallInfo[]): unknown;
  /** The app said that inputs may run again when `handleBatch` throws. */
  readonly repeatable: boolean;
  shutdown(): unknown;
  /** A sample call to run before the worker is ready. */
  readonly example: { readonly route: string; readonly input: unknown } | null;
}
