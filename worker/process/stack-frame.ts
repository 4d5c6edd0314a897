/** Finds the app's own code in a stack trace. */
import { isAbsolute } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Returns the place of the innermost stack frame in the app's own code. */
export function firstFrameOutside(stack: string): string | null {
  for (const line of stack.split('\n')) {
    const place = /(?:\(|at |^)(?:async )?((?:file:\/\/)?\/[^()\s]+:\d+(?::\d+)?)\)?/.exec(line.trim())?.[1];
    if (place === undefined || place.includes('/node_modules/') || place.includes(OWN_FOLDER)) continue;
    return place.startsWith('file:') ? place.replace(/^file:\/\//, '') : place;
  }
  return null;
}

/**
 * Removes the frames of the server, of Node and of the TypeScript loader from a stack, because they do not help an
 * author.
 */
export function withoutOwnFrames(stack: string): string {
  const isFrame = (line: string): boolean => FRAME.test(line);
  const isOwn = (line: string): boolean =>
    line.includes(OWN_FOLDER) || /\bnode:|\/node_modules\/tsx\//.test(line);
  return stack
    .split('\n')
    .filter((line) => !isFrame(line) || !isOwn(line))
    .join('\n');
}

/** Removes these frames from the stack of an error of the app, unless no other frame names a file. */
export function stackOfApp(stack: string): string {
  const cut = withoutOwnFrames(stack);
  return cut.split('\n').some((line) => FRAME.test(line) && !line.endsWith('(<anonymous>)')) ? cut : stack;
}

const FRAME = /^\s+at /;

/**
 * Returns the file of the innermost code on the stack that belongs neither to this package nor to another one; null if
 * there is none.
 */
export function callingFile(): string | null {
  const { prepareStackTrace } = Error;
  // The call sites are read as data, because a path with spaces cannot be parsed from a stack's text.
  Error.prepareStackTrace = (_error, sites) => sites;
  const sites = new Error().stack as unknown as NodeJS.CallSite[];
  Error.prepareStackTrace = prepareStackTrace;
  for (const site of sites) {
    const name = site.getFileName() ?? '';
    const file = name.startsWith('file:') ? fileURLToPath(name) : name;
    if (isAbsolute(file) && !file.includes('/node_modules/') && !file.startsWith(OWN_FOLDER)) return file;
  }
  return null;
}

const OWN_FOLDER = fileURLToPath(new URL('../..', import.meta.url));
