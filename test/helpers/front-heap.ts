/** The memory that a front holds once its garbage is collected: unlike its RSS, no business of V8's, nor of the load. */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Cues } from './cues.js';
import { eventually, type Server } from './server.js';

/** The server needs these variables, beside those of its cues. */
export const HEAP_ENV = { NODE_OPTIONS: `--import ${new URL('preload-heap.js', import.meta.url).href}` };

/** Bytes of the heap and of buffers outside it. */
export async function frontHeapBytes({ pid }: Server, { folder }: Cues): Promise<number> {
  const file = join(folder, 'heap');
  rmSync(file, { force: true });
  process.kill(pid, 'SIGUSR2');
  await eventually(
    () => existsSync(file),
    90_000,
    () => `waiting for the heap of process ${pid}`,
  );
  return Number(readFileSync(file, 'utf8'));
}
