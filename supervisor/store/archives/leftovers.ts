/** Removes the folders of servers that were killed. No link is followed. */
import { lstat, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { processNamespace, startOf } from '../../machine/process-start.js';
import { FOLDER_PREFIX, type Removal } from './own-folder.js';

/** Processes in other containers, or on other machines that share the folder, are invisible: their folders are kept while they are touched. */
const UNTOUCHED_MS = 15 * 60_000;

/** Never rejects: folders that cannot be removed are left for the next server. */
export async function removeLeftovers(removal: Removal, folder = tmpdir()): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  for (const name of names) {
    const owner = ownerIn(name);
    if (owner === null) continue;
    const path = join(folder, name);
    if (await isLeftover(path, owner)) await removal.remove(path);
  }
}

interface Owner {
  readonly pid: number;
  readonly start: string;
  readonly namespace: string;
}

/** Null if the name is not one of our folders. */
function ownerIn(name: string): Owner | null {
  if (!name.startsWith(FOLDER_PREFIX)) return null;
  const [, pid, start = '', namespace = ''] =
    /^(\d+)-(\d+)-([\dx]*[\da-f]*)-[\da-f]{32}$/.exec(name.slice(FOLDER_PREFIX.length)) ?? [];
  return pid === undefined ? null : { pid: Number(pid), start, namespace };
}

async function isLeftover(path: string, { pid, start, namespace }: Owner): Promise<boolean> {
  const found = await lstat(path).catch(() => null);
  if (found?.isDirectory() !== true || found.uid !== process.getuid?.()) return false;
  if (namespace !== processNamespace()) return Date.now() - found.mtimeMs > UNTOUCHED_MS;
  if (start === '0') return !isThere(pid);
  const started = startOf(pid);
  return started !== undefined && started !== start;
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === 'EPERM';
  }
}
