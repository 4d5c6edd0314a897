/** Tells where the app ended its worker with `process.exit`, which by itself leaves nothing but a code. */
import { firstFrameOutside } from './stack-frame.js';

/** The libraries that an app goes through on the way may be many. */
const FRAMES = 50;

/**
 * Takes the place of `process.exit`; `report` gets a text such as `process.exit(1) was called at /srv/app.ts:3:9` just
 * before the process ends. Returns the real one, for our own ends.
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
