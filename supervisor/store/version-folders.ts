/** Finds the versions of a model that lies in a folder as Triton's repositories have it: `name/1/model.onnx`. */
import { readdir } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { EXTENSIONS } from '../runtimes/index.js';
import { archiveInvalid } from './archive-invalid.js';
import type { ModelFolder } from './entry-file.js';
import { isBelow, realPathOf } from './place.js';

export interface VersionFile {
  /** The name of its folder, a whole number from 1. */
  readonly version: string;
  /** Absolute path. */
  readonly app: string;
}

/** The highest version first; empty if no folder has one. @throws SERVE_ARCHIVE_INVALID for a link out of `root` */
export async function versionFiles({ folder, root }: ModelFolder, url: string): Promise<VersionFile[]> {
  const names = (await readdir(folder)).filter((name) => /^[1-9]\d{0,17}$/.test(name));
  const versions = names.sort((a, b) => Number(b) - Number(a));
  const found: VersionFile[] = [];
  for (const version of versions) {
    const file = await modelIn(join(folder, version));
    const target = file === null ? null : await realPathOf(file);
    if (file === null || target === null) continue;
    if (!isBelow(target, root))
      throw archiveInvalid(
        url,
        `${version}/${basename(file)} is a link that points outside the model store.`,
      );
    found.push({ version, app: file });
  }
  return found;
}

/** The file with the name that Triton looks for by default. */
async function modelIn(folder: string): Promise<string | null> {
  const files = await readdir(folder).catch(() => []);
  const name = files.find(
    (file) => file === `model${extname(file)}` && EXTENSIONS.alone.includes(extname(file)),
  );
  return name === undefined ? null : join(folder, name);
}
