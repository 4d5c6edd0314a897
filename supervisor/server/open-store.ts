/** The model store that an operator names. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { configError } from '../../protocol/errors.js';
import { ModelStore } from '../store/model-store.js';

/** `given` null: there is none. `folder`: that of relative paths. @throws SERVE_CONFIG if it is no folder */
export function openStore(given: string | null, folder: string): ModelStore {
  if (given === null) return new ModelStore(null);
  const path = resolve(folder, given);
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) throw configError(`--model-store ${given}: no such folder.`);
  if (!found.isDirectory())
    throw configError(`--model-store ${given}: a folder of models is wanted, and this is a file.`);
  return new ModelStore(path);
}
