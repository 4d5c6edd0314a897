/** Makes an app of a file: its loader makes exports of the file, and an adapter an app of those. */
import { dirname, extname } from 'node:path';
import type { StartSpec } from '../../protocol/wire/messages.js';
import { fromBananaApp } from '../adapters/banana-app.js';
import { fromPotassiumApp } from '../adapters/potassium-app.js';
import { AppLoadError, locateText } from './explain-load-error.js';
import { hintMisnamed, missingHandler, notLoadable } from './explain-missing-app.js';
import { modules, type AppFile, type Loader } from './load-module.js';
import type { Exports, LoadedApp } from '../adapters/loaded-app.js';

/** Loads ONNX models; what that needs is loaded only in a worker that does it. */
const onnxModels: Loader = {
  extensions: ['.onnx'],

  async load(file) {
    const { exportsOfModel } = await import('./onnx/exports-of-model.js');
    return {
      candidates: [await exportsOfModel(file, process.env)],
      explainMissing: () => new AppLoadError(`${file.app}: an ONNX model has no handlers to choose from.`),
    };
  },
};

const LOADERS: readonly Loader[] = [modules, onnxModels];
const ADAPTERS: readonly ((exports: Exports) => LoadedApp | null)[] = [fromPotassiumApp, fromBananaApp];

/** Loads the app that a worker is started with. @throws AppLoadError with file, line, cause and cure */
export async function loadApp(file: AppFile, loaders: readonly Loader[] = LOADERS): Promise<LoadedApp> {
  const { app: path, service = null } = file;
  const loader = loaders.find(({ extensions }) => extensions.includes(extname(path)));
  const mistake = notLoadable(path, loader !== undefined);
  if (mistake !== null) throw mistake;
  // A file that does not exist may have any extension; the import reports it.
  const { candidates, explainMissing } = await (loader ?? modules).load(file);
  const adapted = (service?.handler ?? '') === '' ? adaptAny(path, candidates) : null;
  const found = adapted ?? (await serviceOf(path, candidates, service));
  if (found === null) throw explainMissing();
  return found;
}

function adaptAny(path: string, candidates: readonly Exports[]): LoadedApp | null {
  for (const exports of candidates) {
    for (const adapt of ADAPTERS) {
      const app = adaptOrExplain(path, exports, adapt);
      if (app === null) continue;
      if (adapt === fromBananaApp) hintMisnamed(path, exports);
      return app;
    }
  }
  return null;
}

/** Returns the custom service among the exports; null if there is none and none was asked for. @throws AppLoadError */
async function serviceOf(
  path: string,
  candidates: readonly Exports[],
  service: NonNullable<StartSpec['service']> | null,
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
