/** Finds the user's onnxruntime-node. It is an optional peer, because its install takes 288 MB. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { configError } from '../../../protocol/errors.js';

export interface SearchedPlaces {
  /** The model comes from an archive, whose packages are not the operator's. */
  readonly isUnpacked: boolean;
  readonly startFolder: string;
  /** The folder of this package. */
  readonly ownFolder?: string;
}

const NAME = 'onnxruntime-node';

/** The first version that describes the inputs and outputs of a model. */
const LEAST = [1, 22] as const;

const OWN_FOLDER = fileURLToPath(new URL('.', import.meta.url));

/**
 * Looks from the model's folder, then from the folder of the start, then beside
 * this package. @throws SERVE_CONFIG with the command that installs it
 */
export function findOnnxruntime(
  model: string,
  { isUnpacked, startFolder, ownFolder = OWN_FOLDER }: SearchedPlaces,
): FoundOnnxruntime {
  const folders = [...(isUnpacked ? [] : [dirname(model)]), startFolder, ownFolder];
  const found = folders.map(onnxruntimeFrom).find((one) => one !== null);
  const needs = `${model}: serving a .onnx file needs`;
  if (found === undefined)
    throw configError(`${needs} the package ${NAME}, which is not installed. Run: npm install ${NAME}`);
  const { folder, version } = found;
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > LEAST[0] || (major === LEAST[0] && minor >= LEAST[1])) return found;
  throw configError(
    `${needs} ${NAME} ${LEAST.join('.')} or newer, and ${folder} is ${version}. Run: npm install ${NAME}@latest`,
  );
}

export interface FoundOnnxruntime {
  readonly folder: string;
  /** Its main file, for `require`. */
  readonly main: string;
  readonly version: string;
}

function onnxruntimeFrom(folder: string): FoundOnnxruntime | null {
  const { resolve } = createRequire(join(folder, 'any-file'));
  try {
    const manifest = resolve(`${NAME}/package.json`);
    const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { readonly version: string };
    return { folder: dirname(manifest), main: resolve(NAME), version };
  } catch {
    return null; // it is not there, or not whole
  }
}
