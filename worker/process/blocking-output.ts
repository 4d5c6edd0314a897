import { setBlocking } from './node-internals.js';

/**
 * Makes prints wait for room in the pipe. By default Node keeps in memory what does not fit into a pipe: without bound
 * while nothing reads it, written after later prints of native code, and lost when the process dies. Programs that the app
 * starts inherit the same pipe, and few can handle the EAGAIN of a non-blocking one.
 */
export function blockOnOutput(): void {
  setBlocking(process.stdout);
  setBlocking(process.stderr);
}
