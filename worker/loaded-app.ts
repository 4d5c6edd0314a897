/**
 * The one shape the run loop knows. Each file in `adapters/` turns one way of writing an app into it.
 */
import type { InferenceContext, InitContext } from './api/types.js';

export interface LoadedApp {
  readonly routes: readonly string[];
  readonly modelOptions: Readonly<Record<string, unknown>>;
  init(ctx: InitContext): unknown;
  /** Answers one call; the value is what `reply/` encodes. May return a promise. */
  handle(route: string, input: unknown, ctx: InferenceContext): unknown;
  shutdown(): unknown;
  /** A sample call to run before the worker is ready. */
  readonly example: { readonly route: string; readonly input: unknown } | null;
}
