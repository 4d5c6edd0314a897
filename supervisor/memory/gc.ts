/**
 * Controls garbage collection while large bodies pass. V8 counts their bytes as growth of the heap, and the front's live
 * heap is small, 9 MB: at 10 MB per body V8 would run a full collection for every call, 40% of the front's time. These
 * collections find nothing: slabs live on and pieces die young (docs/benchmarks.md).
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Growth of the heap before a full collection, in percent of the live heap. 0: V8's default. */
const HEAP_GROWING_PERCENT = 700;

/**
 * Switches to rare full collections, or back. Only the command calls this: the setting affects the whole process, and a
 * program that calls `serve()` owns its process. Never permanently: with many small calls, old garbage that is never
 * collected keeps young garbage alive.
 */
export function collectSeldom(seldom: boolean): void {
  setFlagsFromString(`--heap-growing-percent=${seldom ? HEAP_GROWING_PERCENT : 0}`);
}

/**
 * Frees unreferenced buffers now. V8 collects only when something allocates, so an idle server would keep them. Blocks for
 * some 10 ms: use it for rare events of many megabytes.
 */
export function collectNow(): void {
  collect ??= exposedCollector();
  collect();
}

let collect: (() => void) | null = null;

/** V8 adds `gc` to contexts that are created while the flag is set. */
function exposedCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  setFlagsFromString('--no-expose-gc');
  return gc;
}
