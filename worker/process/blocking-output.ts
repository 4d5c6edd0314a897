/**
 * Makes prints wait for room in the pipe. Node's own way, for pipes, is to keep what does not fit in memory: without
 * bound while nobody reads, behind what native code prints later, and lost when the process dies. Programs that the
 * app starts inherit the same pipe, and few can cope with one that answers "not now".
 */
export function blockOnOutput(): void {
  for (const stream of [process.stdout, process.stderr]) {
    // Not in the documented interface, and there since Node 0.x; without it prints are only less prompt.
    const { _handle: handle } = stream as { _handle?: { setBlocking?(on: boolean): void } };
    handle?.setBlocking?.(true);
  }
}
