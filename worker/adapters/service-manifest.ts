/** Reads `MAR-INF/MANIFEST.json`, the description of the model in an archive of Multi Model Server. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Manifest } from '../api/mms/item.js';

/**
 * Returns null if the folder has none. @throws Error with the file's path if it cannot be read or is not a JSON object
 */
export async function readManifest(modelDir: string): Promise<Manifest | null> {
  const file = join(modelDir, 'MAR-INF', 'MANIFEST.json');
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw cause;
  }
  return parsed(text, file);
}

function parsed(text: string, file: string): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new Error(`${file} is not JSON: ${(cause as Error).message}`, { cause });
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Manifest;
  throw new Error(`${file} is not a JSON object`);
}
