/** Looks for programs as a shell does. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The path of the program of this name in the first folder of PATH that has it; null if none has. */
export function findInPath(name: string, { PATH = '' }: NodeJS.ProcessEnv): string | null {
  const folders = PATH.split(delimiter).filter((folder) => folder !== '');
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? null;
}
