/**
 * Garbage collection while large bodies pass. V8 counts their bytes against the growth of the heap, and the front's
 * live heap is small, 9 MB: at 10 MB per body V8's own choice is a full collection for every call, 40% of the front's
 * time. There is nothing to collect: slabs live on and pieces die young (docs/benchmarks.md).
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** How far the heap may grow before all of it is collected, in percent of what lives. 0: V8's choice. */
const HEAP_GROWING_PERCENT = 700;

/**
 * For the command only: this is a setting of the whole process, and one that calls `serve()` is another's. Not for
 * good either: among many small calls, old garbage that is never collected keeps young garbage alive.
 */
export function collectSeldom(seldom: boolean): void {
  setFlagsFromString(`--heap-growing-percent=${seldom ? HEAP_GROWING_PERCENT : 0}`);
}

/**
 * Gives the memory of buffers back that nothing refers to any more. V8 collects when somebody allocates: a server that
 * falls idle would hold them for as long as it stays so. Blocks for some 10 ms; for rare events of many megabytes.
 */
export function collectNow(): void {
  collect ??= exposedCollector();
  collect();
}

let collect: (() => void) | null = null;

/** V8 hands it out to contexts that are made while the flag is set. */
function exposedCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  setFlagsFromString('--no-expose-gc');
  return gc;
}
