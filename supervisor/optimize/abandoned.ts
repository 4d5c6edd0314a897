/** Removes the folders of an `optimize` that was killed while it wrote. */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** Begins the name of a folder that is being written; the number of its process follows. */
export const TEMPORARY = '.writing-';

/** Keeps those whose process lives. */
export function removeAbandoned(place: string): void {
  for (const name of readdirSync(place)) {
    if (!name.startsWith(TEMPORARY)) continue;
    const pid = Number(name.slice(TEMPORARY.length).split('-')[0]);
    if (pid !== process.pid && isAlive(pid)) continue;
    rmSync(join(place, name), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === 'EPERM';
  }
}
