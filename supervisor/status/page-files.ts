/** Reads the files of the page at `/`, which the build has bundled and compressed (`supervisor/page/build.mjs`). */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PageFile, ServedPage } from '../http/request/served-page.js';

/** The folder that the build writes. */
const PAGE_FOLDER = fileURLToPath(new URL('../page', import.meta.url));

const INDEX = 'index.html';

/** Reads all files at once: they are small. Null if the folder has none, because the page was not built. */
export function readPageFiles(folder: string = PAGE_FOLDER): ServedPage['files'] {
  const path = join(folder, 'manifest.json');
  if (!existsSync(path)) return null;
  const types = JSON.parse(readFileSync(path, 'utf8')) as Record<string, string>;
  const files = new Map(Object.entries(types).map(([name, type]) => [name, readFile(folder, name, type)]));
  const index = files.get(INDEX);
  if (index === undefined) throw new Error(`${path} does not list ${INDEX}`);
  files.delete(INDEX);
  return { index, assets: files };
}

function readFile(folder: string, name: string, type: string): PageFile {
  const read = (suffix: string): Buffer => readFileSync(join(folder, name + suffix));
  return { type, identity: read(''), coded: { br: read('.br'), gzip: read('.gz') } };
}
