/** "Did you mean" for a path that leads nowhere. */
import { readdirSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { suggest } from './suggest.js';

/** The path beside it whose name is near, as a sentence with a space before it; empty if there is none. */
export function nearbyHint(given: string, folder: string): string {
  const close = suggest(basename(given), namesIn(resolve(folder, dirname(given))));
  return close === null ? '' : ` Did you mean ${join(dirname(given), close)}?`;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // it is not there either, or nobody may look into it
  }
}
