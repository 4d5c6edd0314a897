/** The model store that an operator names. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { configError } from '../../protocol/errors.js';
import { nearbyHint } from '../options/nearby-path.js';
import { placeOf, type ResolvedOptions } from '../options/resolve.js';
import { ModelStore } from '../store/model-store.js';

/** `folder`: that of relative paths. @throws SERVE_CONFIG if it is no folder, naming where it was written */
export function openStore(resolved: ResolvedOptions, folder: string): ModelStore {
  const { modelStore: given, allowedUrls, defaultHandler } = resolved.options;
  if (given === null) return new ModelStore({ folder: null, allowedUrls, defaultHandler });
  const path = resolve(folder, given);
  const found = statSync(path, { throwIfNoEntry: false });
  const place = placeOf(resolved, 'modelStore');
  if (found === undefined)
    throw configError(`${place} ${given}: no such folder.${nearbyHint(given, folder)}`);
  if (!found.isDirectory())
    throw configError(`${place} ${given}: a folder of models is wanted, and this is a file.`);
  return new ModelStore({ folder: path, allowedUrls, defaultHandler });
}
