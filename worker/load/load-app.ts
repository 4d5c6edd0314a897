/**
 * Imports the user's file and finds the adapter for its exports. TypeScript always goes through tsx
 * (register-typescript.ts); Node imports JavaScript.
 */
import { dirname, extname } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { StartedService } from '../../protocol/wire/messages.js';
import { fromBananaApp } from '../adapters/banana-app.js';
import { fromPotassiumApp } from '../adapters/potassium-app.js';
import { setImportingWorker, type AppPlace } from '../api/in-worker.js';
import { AppLoadError, explainImportError, locateText } from './explain-load-error.js';
import { missingApp, missingHandler, notLoadable } from './explain-missing-app.js';
import type { LoadedApp } from '../adapters/loaded-app.js';
import { registerPackages } from './register-packages.js';
import { registerTypeScript } from './register-typescript.js';

type Exports = Readonly<Record<string, unknown>>;

const ADAPTERS: readonly ((exports: Exports) => LoadedApp | null)[] = [fromPotassiumApp, fromBananaApp];

/**
 * `place` selects one of the file's apps; empty: the one that it exports or serves. `service` describes a custom
 * service; null: its exports decide.
 * @throws AppLoadError with file, line, cause and cure
 */
export async function loadApp(
  path: string,
  place: AppPlace = '',
  service: StartedService | null = null,
): Promise<LoadedApp> {
  const mistake = notLoadable(path);
  if (mistake !== null) throw mistake;
  const offered = listenForApps();
  const imported = importApp(path, service?.modelDir).catch((thrown: unknown) => {
    throw explainImportError(path, thrown);
  });
  // After `await app.serve()` the import never ends, so the exports of the file cannot be seen.
  const namespace = await Promise.race([imported, offered.awaited]);
  const candidates = namespace === null ? [] : exportCandidates(namespace);
  const app =
    place === '' ? onlyServed(path, offered.served) : appAt(path, place, offered.byPlace, candidates);
  if (app !== undefined) candidates.unshift(withExports(app, namespace), app);
  const adapted = (service?.handler ?? '') === '' ? adaptAny(path, candidates) : null;
  const found = adapted ?? (await serviceOf(path, candidates, service));
  if (found !== null) return found;
  throw missingApp(path, candidates, offered.byPlace.size > 0);
}

function adaptAny(path: string, candidates: readonly Exports[]): LoadedApp | null {
  for (const exports of candidates) {
    for (const adapt of ADAPTERS) {
      const app = adaptOrExplain(path, exports, adapt);
      if (app !== null) return app;
    }
  }
  return null;
}

/** Returns the custom service among the exports; null if there is none and none was asked for. @throws AppLoadError */
async function serviceOf(
  path: string,
  candidates: readonly Exports[],
  service: StartedService | null,
): Promise<LoadedApp | null> {
  if (service === null && candidates.some(({ inference }) => inference !== undefined)) return null;
  const { findHandler } = await import('../adapters/service-handler.js');
  const handler = findHandler(candidates, service?.handler ?? '', service !== null);
  if (handler === null) {
    if (service === null) return null;
    throw missingHandler(path, candidates, service.handler);
  }
  const { fromService } = await import('../adapters/mms-service.js');
  const modelDir = service?.modelDir ?? dirname(path);
  return adaptOrExplain(path, candidates[0] ?? {}, (exports) => fromService(handler, exports, modelDir));
}

/** Returns exports as if the Potassium app were the default export, with `config` and `shutdown` beside it. */
function withExports(app: Exports, namespace: Exports | null): Exports {
  return { config: namespace?.['config'], shutdown: namespace?.['shutdown'], default: app };
}

interface OfferedApps {
  readonly byPlace: ReadonlyMap<AppPlace, Exports>;
  readonly served: ReadonlySet<Exports>;
  /** Resolves once the file awaits the end of a server. */
  readonly awaited: Promise<null>;
}

/**
 * Collects the apps that are created or served while the file is imported; a worker does not start servers, it takes
 * their apps.
 */
function listenForApps(): OfferedApps {
  const byPlace = new Map<AppPlace, Exports>();
  const served = new Set<Exports>();
  const awaited = new Promise<null>((resolve) => {
    setImportingWorker({
      onMade: (app, place) => byPlace.set(place, app as Exports),
      onServe: (app, place) => {
        byPlace.set(place, app as Exports);
        served.add(app as Exports);
      },
      onAwaited: () => setImmediate(() => resolve(null)), // `serve().then(...)` may also be the last statement of a file
    });
  });
  return { byPlace, served, awaited };
}

/**
 * Returns the app that the file serves; undefined if it serves none. @throws AppLoadError if it serves several, because
 * any choice would be a guess
 */
function onlyServed(path: string, served: ReadonlySet<Exports>): Exports | undefined {
  if (served.size > 1) {
    throw new AppLoadError(`${path}: this file serves ${served.size} apps. Give each a file of its own.`);
  }
  return [...served][0];
}

/**
 * Returns the app at this place; undefined if the file exports functions that it serves behind a guard.
 * @throws AppLoadError if the file did not create or serve that app while it was imported
 */
function appAt(
  path: string,
  place: AppPlace,
  byPlace: ReadonlyMap<AppPlace, Exports>,
  candidates: readonly Exports[],
): Exports | undefined {
  const app = byPlace.get(place);
  if (app !== undefined) return app;
  const [verb = '', nth = ''] = place.split(' ');
  if (verb === 'served' && nth === '1') {
    if (candidates.some(({ inference, inferenceBatch }) => inference ?? inferenceBatch)) return undefined;
    throw new AppLoadError(
      `${locateText(path, 'serve(')}: a worker that imports this file does not reach this serve(). If a guard comes before it (${GUARDS}), which is false in a worker, also export the functions: \`export function inference(modelInputs) { … }\`.`,
    );
  }
  const what = `app number ${nth} that this file ${verb === 'made' ? 'makes' : 'serves'}`;
  throw new AppLoadError(
    `${path}: ${what} does not exist when a worker imports the file. Create it at the top level of the file, before any await, or in a file of its own.`,
  );
}

const GUARDS = 'process.argv[1] === import.meta.filename, require.main === module';

async function importApp(path: string, modelDir?: string): Promise<Exports> {
  const extension = extname(path);
  if (!extension.endsWith('ts')) {
    registerPackages(dirname(path), modelDir);
    return (await import(pathToFileURL(path).href)) as Exports;
  }
  await registerTypeScript(dirname(path));
  registerPackages(dirname(path), modelDir);
  const cjs = await import('tsx/cjs/api');
  // Node's loader gives ESM syntax in a .cts file to the CommonJS parser; tsx's require compiles it first.
  if (extension === '.cts') return cjs.require(path, import.meta.url) as Exports;
  return (await import(pathToFileURL(path).href)) as Exports;
}

/** Returns the namespace, its default export, and the default export of that, because CommonJS output nests them. */
function exportCandidates(namespace: Exports): Exports[] {
  const candidates: Exports[] = [];
  let value: unknown = namespace;
  while (typeof value === 'object' && value !== null && candidates.length < 3) {
    candidates.push(value as Exports);
    value = (value as Exports)['default'];
  }
  return candidates;
}

function adaptOrExplain(
  path: string,
  exports: Exports,
  adapt: (exports: Exports) => LoadedApp | null,
): LoadedApp | null {
  try {
    return adapt(exports);
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) throw thrown;
    const name = /`(\w+)`/.exec(thrown.message)?.[1] ?? '';
    throw new AppLoadError(`${locateText(path, name)}: ${thrown.message}`);
  }
}
