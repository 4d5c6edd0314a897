/** A thread that reads files whole for their digests, which takes a second for each gigabyte; `optimized-files.ts` starts it. */
import { createHash } from 'node:crypto';
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { externalLocations } from './external-files.js';

/** A file as it was when its digest was taken. */
export interface FileFacts {
  readonly path: string;
  readonly bytes: number;
  readonly modifiedMs: number;
  readonly sha256: string;
}

function factsOf(path: string): FileFacts {
  const stats = statSync(path);
  if (!stats.isFile()) throw new Error(`${path} is no file`); // a device may have no end
  const { size, mtimeMs } = stats;
  const hash = createHash('sha256');
  const piece = Buffer.alloc(1024 * 1024);
  const file = openSync(path, 'r');
  try {
    for (let read = readSync(file, piece); read > 0; read = readSync(file, piece))
      hash.update(piece.subarray(0, read));
  } finally {
    closeSync(file);
  }
  return { path, bytes: size, modifiedMs: mtimeMs, sha256: hash.digest('hex') };
}

/** `isModel`: the first path is a model, whose files of weights are to be added. */
const { paths, isModel } = workerData as { readonly paths: readonly string[]; readonly isModel: boolean };
const [model = ''] = paths;
const weights = isModel ? externalLocations(model).map((location) => resolve(dirname(model), location)) : [];
parentPort?.postMessage([...paths, ...weights].map(factsOf));
