/** The Banana way of writing an app: `init()` and `inference(modelInputs)`, exported by name or as default. */
import { inputWishes } from '../api/input-wishes.js';
import type { BananaApp } from '../api/types.js';
import type { LoadedApp } from '../loaded-app.js';
import { assertFunctionOrNone, configOf } from './exports.js';

const ROUTE = '/';

/** Returns null if the exports are not a Banana app. @throws a TypeError that says which export is of a wrong kind. */
export function fromBananaApp(exports: Readonly<Record<string, unknown>>): LoadedApp | null {
  if (typeof exports['inference'] !== 'function') return null;
  assertFunctionOrNone(exports, 'init');
  assertFunctionOrNone(exports, 'shutdown');
  const app = exports as unknown as BananaApp;
  const { forms, text, ...modelOptions } = configOf(exports);
  const wishes = inputWishes({ forms, text }, 'export `config`');
  return {
    routes: [{ path: ROUTE, kind: 'handler', input: 'any', webhook: '', maxBatch: 1 }],
    modelOptions,
    wishes: () => wishes,
    init: (ctx) => app.init?.(ctx),
    handle: (_route, input, ctx) => app.inference(input, ctx),
    shutdown: () => app.shutdown?.(),
    example: 'example' in exports ? { route: ROUTE, input: exports['example'] } : null,
  };
}
