/**
 * Finds the app's own code in a stack trace, also that which ends its worker with `process.exit`: otherwise only an exit
 * code would be left.
 */
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

/** Stack frames to record; libraries between the app and `process.exit` may take many. */
const FRAMES = 50;

/**
 * Replaces `process.exit`; `report` gets a text such as `process.exit(1) was called at /srv/app.ts:3:9` just before the
 * process ends. Returns the original, for the worker's own use.
 */
export function watchAppExit(report: (what: string) => void): typeof process.exit {
  const exit = process.exit.bind(process);
  process.exit = (code) => {
    report(`process.exit(${typeof code === 'number' ? code : ''}) was called at ${callersPlace()}`);
    return exit(code);
  };
  return exit;
}

function callersPlace(): string {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = FRAMES;
  const { stack = '' } = new Error();
  Error.stackTraceLimit = stackTraceLimit;
  return firstFrameOutside(stack) ?? 'a place outside the app';
}
