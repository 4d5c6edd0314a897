/** Finds the files of a model's folder that go into its archive, as Multi Model Server's archiver does. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isLeftover } from '../runtimes/index.js';

/** The archive cannot be written; the message has the reason and a remedy. */
export class ArchiverProblem extends Error {}

export interface ModelFile {
  /** Path in the archive, with slashes. */
  readonly name: string;
  readonly path: string;
  readonly bytes: number;
  readonly mode: number;
  readonly changedAt: Date;
}

export interface ModelFiles {
  /** Sorted by name. */
  readonly files: readonly ModelFile[];
  /** Names of entries that are neither file nor folder, and of links to folders, which might form a cycle. */
  readonly leftOut: readonly string[];
}

/** `leaving`: an absolute path that never belongs to the model: that of the archive. */
export async function modelFiles(folder: string, leaving: string): Promise<ModelFiles> {
  const files: ModelFile[] = [];
  const leftOut: string[] = [];
  const walk = async (below: string): Promise<void> => {
    for (const entry of await readdir(join(folder, below), { withFileTypes: true })) {
      const name = below === '' ? entry.name : `${below}/${entry.name}`;
      const path = join(folder, name);
      if (path === leaving) continue;
      if (entry.isDirectory()) {
        if (!isFolderOfOthers(entry.name)) await walk(name);
        continue;
      }
      const found = await stat(path); // follows links
      if (!found.isFile()) leftOut.push(name);
      else if (!isFileOfOthers(entry.name))
        files.push({ name, path, bytes: found.size, mode: found.mode, changedAt: found.mtime });
    }
  };
  await walk('');
  return { files: files.sort((a, b) => (a.name < b.name ? -1 : 1)), leftOut };
}

function isFolderOfOthers(name: string): boolean {
  return name.startsWith('.') || name === '__MACOSX' || isLeftover(name);
}

/** An old manifest is left out, because a new one is written. */
function isFileOfOthers(name: string): boolean {
  return name === 'MANIFEST.json' || /\.(?:DS_Store|mar)$/.test(name) || isLeftover(name);
}
