/** Reads the files of the page at `/`, which the build has bundled and compressed (`supervisor/page/build.mjs`). */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PageFile, PageFiles } from '../http/request/served-page.js';

/** The folder that the build writes. */
export const PAGE_FOLDER = fileURLToPath(new URL('../page', import.meta.url));

const SUFFIXES = { br: '.br', gzip: '.gz' } as const;

interface Manifest {
  /** Name of the document. */
  readonly index: string;
  readonly files: Readonly<Record<string, Listed>>;
}

interface Listed {
  readonly type: string;
  /** The codings of which there is a file. */
  readonly encodings: readonly (keyof typeof SUFFIXES)[];
}

/** Reads all files at once: they are small. Null if the folder has none, because the page was not built. */
export function readPageFiles(folder: string = PAGE_FOLDER): PageFiles | null {
  const path = join(folder, 'manifest.json');
  if (!existsSync(path)) return null;
  const { index, files } = JSON.parse(readFileSync(path, 'utf8')) as Manifest;
  const read = new Map(Object.entries(files).map(([name, listed]) => [name, readFile(folder, name, listed)]));
  const document = read.get(index);
  if (document === undefined) throw new Error(`${path} does not list its index ${index}`);
  read.delete(index);
  return { index: document, assets: read };
}

function readFile(folder: string, name: string, { type, encodings }: Listed): PageFile {
  const coded = encodings.map((coding) => [coding, readFileSync(join(folder, name + SUFFIXES[coding]))]);
  return {
    type,
    identity: readFileSync(join(folder, name)),
    coded: Object.fromEntries(coded) as PageFile['coded'],
  };
}
