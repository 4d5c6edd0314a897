/** "Did you mean": the existing path nearest to a mistyped one. */
import { readdirSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { didYouMean } from '../../protocol/text/sentences.js';

/** A sentence, after a space, with the path beside `given` whose name is nearest; empty if none is near. */
export function nearbyHint(given: string, folder: string): string {
  const names = namesIn(resolve(folder, dirname(given)));
  return didYouMean(basename(given), names, ' Did', (name) => join(dirname(given), name));
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // it does not exist, or may not be read
  }
}
