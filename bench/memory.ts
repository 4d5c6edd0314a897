/** Memory of a process after a garbage collection; needs `servers/preload-gc.ts`. */
import { setTimeout as delay } from 'node:timers/promises';
import { openFilesOf, rssMbOf } from './proc.js';

export interface Reading {
  readonly rssMb: number;
  readonly files: number;
}

/** Garbage is collected several times, because finalizers and freed pages lag one collection behind. */
const COLLECTIONS = 4;

export async function readAfterGc(pid: number): Promise<Reading> {
  for (let i = 0; i < COLLECTIONS; i += 1) {
    process.kill(pid, 'SIGUSR2');
    await delay(250);
  }
  return { rssMb: rssMbOf(pid), files: openFilesOf(pid) };
}
