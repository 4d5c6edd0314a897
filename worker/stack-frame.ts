/** Places in a stack trace that are the app's own. */
import { fileURLToPath } from 'node:url';

/** Place of the innermost stack frame in the app's own code. */
export function firstFrameOutside(stack: string): string | null {
  for (const line of stack.split('\n')) {
    const place = /(?:\(|at |^)(?:async )?((?:file:\/\/)?\/[^()\s]+:\d+(?::\d+)?)\)?/.exec(line.trim())?.[1];
    if (place === undefined || place.includes('/node_modules/') || place.includes(OWN_FOLDER)) continue;
    return place.startsWith('file:') ? place.replace(/^file:\/\//, '') : place;
  }
  return null;
}

const OWN_FOLDER = fileURLToPath(new URL('..', import.meta.url));
