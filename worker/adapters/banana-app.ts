/** The Banana way of writing an app: `init()` and `inference(modelInputs)`, exported by name or as default. */
import type { BananaApp } from '../api/types.js';
import type { LoadedApp } from '../loaded-app.js';

const ROUTE = '/';

/** Returns null if the exports are not a Banana app. @throws a TypeError that says which export is of a wrong kind. */
export function fromBananaApp(exports: Readonly<Record<string, unknown>>): LoadedApp | null {
  if (typeof exports['inference'] !== 'function') return null;
  for (const name of ['init', 'shutdown'] as const) {
    const value = exports[name];
    if (value !== undefined && typeof value !== 'function') {
      throw new TypeError(`export \`${name}\` is ${aKind(value)}; make it a function or remove it`);
    }
  }
  const config = exports['config'] ?? {};
  if (typeof config !== 'object' || Array.isArray(config)) {
    throw new TypeError('export `config` must be an object, such as { runTimeout: "30s" }');
  }
  const app = exports as unknown as BananaApp;
  return {
    routes: [{ path: ROUTE, kind: 'handler', input: 'any', webhook: '' }],
    modelOptions: config as Record<string, unknown>,
    init: (ctx) => app.init?.(ctx),
    handle: (_route, input, ctx) => app.inference(input, ctx),
    shutdown: () => app.shutdown?.(),
    example: 'example' in exports ? { route: ROUTE, input: exports['example'] } : null,
  };
}

function aKind(value: unknown): string {
  return `${typeof value === 'object' ? 'an' : 'a'} ${typeof value}`;
}
