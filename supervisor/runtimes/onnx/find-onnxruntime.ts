/** Finds the user's onnxruntime-node. It is an optional peer, because its install takes 288 MB. */
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { configError } from '../../../protocol/errors.js';
import type { Task } from '../../../protocol/wire/messages.js';
import type { AppSetting } from '../runtime.js';

/** onnxruntime, also in apps, writes a device id below the cache folder and reports to its maker unless this is set. */
export const NO_TELEMETRY: Readonly<Record<string, string>> = { ORT_DISABLE_TELEMETRY: '1' };

/** @throws SERVE_CONFIG if onnxruntime-node cannot be there, or is not installed, with what to do */
export function usableOnnxruntime(
  model: string,
  setting: Pick<AppSetting, 'isUnpacked' | 'startFolder'>,
): ReturnType<typeof findOnnxruntime> {
  const { platform, arch } = process;
  const problem = problemOfPlatform(platform, arch, platform === 'linux' && isLinkedWithMusl());
  if (problem !== null) throw configError(`${model}: ${problem}`);
  return findOnnxruntime(model, setting);
}

const NAME = 'onnxruntime-node';

/** The first version that describes the inputs and outputs of a model. */
const LEAST = '1.22';

const OWN_FOLDER = fileURLToPath(new URL('.', import.meta.url));

/**
 * Looks from the model's folder, unless that comes from an archive, whose packages are not the operator's; then from the folder
 * of the start, then beside this package. @throws SERVE_CONFIG with the command that installs it
 */
export function findOnnxruntime(
  model: string,
  setting: Pick<AppSetting, 'isUnpacked' | 'startFolder'>,
  ownFolder = OWN_FOLDER,
): NonNullable<ReturnType<typeof onnxruntimeFrom>> {
  const found = foldersOf(model, setting, ownFolder)
    .map(onnxruntimeFrom)
    .find((one) => one !== null);
  const needs = `${model}: serving a .onnx file needs`;
  if (found === undefined)
    throw configError(`${needs} the package ${NAME}, which is not installed. Run: npm install ${NAME}`);
  const { folder, version } = found;
  if (version.localeCompare(LEAST, 'en', { numeric: true }) >= 0) return found;
  throw configError(
    `${needs} ${NAME} ${LEAST} or newer, and ${folder} is ${version}. Run: npm install ${NAME}@latest`,
  );
}

function foldersOf(
  model: string,
  { isUnpacked, startFolder }: Pick<AppSetting, 'isUnpacked' | 'startFolder'>,
  ownFolder: string,
): string[] {
  return [...(isUnpacked ? [] : [dirname(model)]), startFolder, ownFolder];
}

/** Looks in the same places for the main file of @huggingface/tokenizers, which comes with transformers.js. @throws SERVE_CONFIG */
export function findTokenizers(
  model: string,
  task: Task,
  setting: Pick<AppSetting, 'isUnpacked' | 'startFolder'>,
): string {
  if (task !== 'embedding')
    throw configError(`${model}: without code there is no task ${task}, only embedding.`);
  for (const folder of foldersOf(model, setting, OWN_FOLDER)) {
    const own = resolved(join(folder, 'any-file'), TOKENIZERS);
    const transformers = resolved(join(folder, 'any-file'), TRANSFORMERS);
    const found = own ?? (transformers === null ? null : resolved(transformers, TOKENIZERS));
    if (found !== null) return found;
  }
  throw configError(
    `${model}: the task embedding needs the package ${TRANSFORMERS}, which is not installed. Run: npm install ${TRANSFORMERS}`,
  );
}

const TRANSFORMERS = '@huggingface/transformers';
const TOKENIZERS = '@huggingface/tokenizers';

function resolved(from: string, name: string): string | null {
  try {
    return createRequire(from).resolve(name);
  } catch {
    return null;
  }
}

/** `main`: its main file, for `require`. */
function onnxruntimeFrom(folder: string) {
  const { resolve } = createRequire(join(folder, 'any-file'));
  try {
    const manifest = resolve(`${NAME}/package.json`);
    const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { readonly version: string };
    return { folder: dirname(manifest), main: resolve(NAME), version };
  } catch {
    return null; // it is not there, or not whole
  }
}

/** Says what is missing and what to do instead; null for a platform that has binaries. */
export function problemOfPlatform(os: NodeJS.Platform, arch: string, isMusl: boolean): string | null {
  if (isMusl)
    return 'onnxruntime-node has no binaries for musl, the C library of Alpine Linux. Use an image with glibc, such as node:24-slim.';
  if (BINARIES.includes(`${os} ${arch}`)) return null;
  const what = os === 'darwin' ? 'Macs with Intel processors' : `${os} on ${arch}`;
  return `onnxruntime-node has no binaries for ${what}. Serve it on Linux (x64, arm64) or on a Mac with an Apple processor.`;
}

const BINARIES = ['linux x64', 'linux arm64', 'darwin arm64', 'win32 x64', 'win32 arm64'];

/** Whether this Node is linked with musl, as in Alpine Linux: reads the program's head, which names its loader. */
export function isLinkedWithMusl(): boolean {
  const head = Buffer.alloc(HEAD_BYTES);
  const file = openSync(process.execPath, 'r');
  try {
    return head.subarray(0, readSync(file, head)).includes('/ld-musl-');
  } finally {
    closeSync(file);
  }
}

const HEAD_BYTES = 4096;
