/** The libuv stream of `process.stdout` or `process.stderr`, a private field of Node (test/house/node-internals.test.ts). */
interface OutputInternals {
  readonly _handle?: { setBlocking?(on: boolean): void };
}

/**
 * Makes prints wait for room in the pipe; there is no documented way, and without the field they are only less prompt. By
 * default Node keeps in memory what does not fit into a pipe: without bound while nothing reads it, written after later prints
 * of native code, and lost when the process dies. Programs that the app starts inherit the same pipe, and few can handle the
 * EAGAIN of a non-blocking one.
 */
export function blockOnOutput(): void {
  for (const output of [process.stdout, process.stderr] as OutputInternals[])
    output._handle?.setBlocking?.(true);
}
