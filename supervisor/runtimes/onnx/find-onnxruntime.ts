/** Finds the user's onnxruntime-node, an optional peer: its install takes 288 MB. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { configError } from '../../../protocol/errors.js';

export interface FoundOnnxruntime {
  /** The module, for `require`. */
  readonly path: string;
  readonly version: string;
}

interface Places {
  /** The model comes from an archive, whose packages are not the operator's. */
  readonly isUnpacked: boolean;
  readonly startFolder: string;
}

const NAME = 'onnxruntime-node';

/** The first version that describes the inputs and outputs of a model. */
const LEAST = [1, 22] as const;

/** Looks from the model's folder, then from the folder of the start, then beside this package. @throws SERVE_CONFIG with the command that installs it */
export function findOnnxruntime(model: string, { isUnpacked, startFolder }: Places): FoundOnnxruntime {
  const own = dirname(fileURLToPath(import.meta.url));
  const folders = [...(isUnpacked ? [] : [dirname(model)]), startFolder, own];
  const found = folders.map(onnxruntimeFrom).find((one) => one !== null);
  if (found === undefined)
    throw configError(
      `${model}: serving a .onnx file needs the package ${NAME}, which is not installed. Run: npm install ${NAME}`,
    );
  const [major = 0, minor = 0] = found.version.split('.').map(Number);
  if (major > LEAST[0] || (major === LEAST[0] && minor >= LEAST[1])) return found;
  throw configError(
    `${model}: serving a .onnx file needs ${NAME} ${LEAST.join('.')} or newer, and ${found.path} is ${found.version}. Run: npm install ${NAME}@latest`,
  );
}

function onnxruntimeFrom(folder: string): FoundOnnxruntime | null {
  const { resolve } = createRequire(join(folder, 'any-file'));
  try {
    const manifest = readFileSync(resolve(`${NAME}/package.json`), 'utf8');
    const { version } = JSON.parse(manifest) as { readonly version: string };
    return { path: resolve(NAME), version };
  } catch {
    return null; // it is not there, or not whole
  }
}
