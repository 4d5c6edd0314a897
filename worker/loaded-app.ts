/**
 * The one shape the run loop knows. Each file in `adapters/` turns one way of writing an app into it.
 */
import type { Route } from '../protocol/messages.js';
import type { InputWishes } from './api/input-wishes.js';
import type { InferenceContext, InitContext } from './api/types.js';

export interface CallInfo extends InferenceContext {
  /** The body as it came, in memory that belongs to the call. */
  readonly body: Buffer;
}

export interface LoadedApp {
  readonly routes: readonly Route[];
  readonly modelOptions: Readonly<Record<string, unknown>>;
  /** Kinds of body that a route has asked for, besides those that every route takes. */
  wishes(route: string): InputWishes;
  init(ctx: InitContext): unknown;
  /**
   * Answers one call; the value is what `reply/` encodes, or a `Reply`. May return a promise. For a WebSocket route
   * `input` is its `WebSocketConnection`, and what is returned is ignored.
   */
  handle(route: string, input: unknown, ctx: CallInfo): unknown;
  shutdown(): unknown;
  /** A sample call to run before the worker is ready. */
  readonly example: { readonly route: string; readonly input: unknown } | null;
}
