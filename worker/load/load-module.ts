/**
 * Loads a module: imports the user's file, and finds the apps that it exports, creates or serves. TypeScript always goes
 * through tsx (register-typescript.ts); Node imports JavaScript.
 */
import { dirname, extname } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { StartSpec } from '../../protocol/wire/messages.js';
import { setImportingWorker, type AppPlace } from '../api/serving.js';
import { AppLoadError, explainImportError, locateText } from './explain-load-error.js';
import { missingApp } from './explain-missing-app.js';
import type { Exports } from '../adapters/loaded-app.js';
import { registerPackages } from './register-packages.js';
import { registerTypeScript } from './register-typescript.js';

/**
 * The file of an app, and what a worker knows when it loads it: the GPU or CPU that it may use, how many threads, and the
 * operator's batch size.
 */
export type AppFile = Pick<
  StartSpec,
  'app' | 'appPlace' | 'service' | 'device' | 'batchSize' | 'asksForBatches'
>;

/** Makes what an adapter takes of the file of an app. Each kind of file has a loader; `load-app.ts` has the list. */
export interface Loader {
  /** Extensions of its files. */
  readonly extensions: readonly string[];
  /** @throws AppLoadError with file, cause and cure */
  load(file: AppFile): Promise<{
    /** Objects that may be an app, the likeliest first; an adapter takes one of them. */
    readonly candidates: readonly Exports[];
    /** Returns the error of a file whose candidates no adapter takes. */
    explainMissing(): AppLoadError;
  }>;
}

export const modules: Loader = {
  extensions: ['.ts', '.mts', '.cts', '.js', '.mjs', '.cjs'],

  async load({ app: path, appPlace: place = '', service }) {
    const offered = listenForApps();
    const imported = importModule(path, service?.modelDir).catch((thrown: unknown) => {
      throw explainImportError(path, thrown);
    });
    // After `await app.serve()` the import never ends, so the exports of the file cannot be seen.
    const namespace = await Promise.race([imported, offered.awaited]);
    const candidates = namespace === null ? [] : exportCandidates(namespace);
    const app =
      place === '' ? onlyServed(path, offered.served) : appAt(path, place, offered.byPlace, candidates);
    if (app !== undefined) candidates.unshift(withExports(app, namespace), app);
    return { candidates, explainMissing: () => missingApp(path, candidates, offered.byPlace.size > 0) };
  },
};

/** Returns exports as if the Potassium app were the default export, with the file's others beside it. */
function withExports(app: Exports, namespace: Exports | null): Exports {
  const { config, shutdown, signature } = namespace ?? {};
  return { config, shutdown, signature, default: app };
}

/**
 * Collects the apps that are created or served while the file is imported; a worker does not start servers, it takes
 * their apps. `awaited` resolves once the file awaits the end of a server.
 */
function listenForApps() {
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
      `${locateText(path, RUNS)}: a worker that imports this file does not reach this run(). If a guard comes before it (${GUARDS}), which is false in a worker, also export the functions: \`export function inference(modelInputs) { … }\`.`,
    );
  }
  const what = `app number ${nth} that this file ${verb === 'made' ? 'makes' : 'serves'}`;
  throw new AppLoadError(
    `${path}: ${what} does not exist when a worker imports the file. Create it at the top level of the file, before any await, or in a file of its own.`,
  );
}

/** The call of `run`, also under its former name; not `session.run(`. */
const RUNS = /(?<![.\w])(?:run|serve)\(/;

const GUARDS = 'process.argv[1] === import.meta.filename, require.main === module';

async function importModule(path: string, modelDir?: string): Promise<Exports> {
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
