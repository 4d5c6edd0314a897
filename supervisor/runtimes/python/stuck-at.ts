/** Describes where a Python worker hung during its start, from the stacks that Python's `faulthandler` wrote. */
import { PYTHON_PATH } from './python-path.js';

/** Files of Python and of installed packages, as opposed to the app's. */
const INSTALLED = /\/lib(64)?\/python3[^/]*\/|^</;
const FRAME = /^ {2}File "(.*)", line (\d+) in (.*)$/gm;

/**
 * Returns a sentence; empty if there are no stacks. `left`: threads, the main one last, with their frames, the innermost
 * first, as in
 *
 *     Thread 0x00007f12 (most recent call first):
 *       File "/app/app.py", line 3 in init
 */
export function stuckAt(left: string): string {
  const main = left.split(/^Thread /m).at(-1) ?? '';
  const frames = [...main.matchAll(FRAME)].map(([, file = '', line, name]) => ({
    file,
    place: `${file}:${line}`,
    name,
  }));
  const innermost = frames[0];
  if (innermost === undefined) return '';
  const ofApp = frames.find(({ file }) => !file.startsWith(PYTHON_PATH) && !INSTALLED.test(file));
  const where = ofApp === undefined ? 'outside the app' : `at ${ofApp.place}`;
  const inside = ofApp === innermost ? '' : `, in ${innermost.name} of ${innermost.place}`;
  return `It hung ${where}${inside}, while native code held the GIL.`;
}
