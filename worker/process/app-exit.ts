/**
 * Reports the line at which the app ended its worker with `process.exit`; otherwise only an exit code would be left.
 */
import { firstFrameOutside } from './stack-frame.js';

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
