/** Digests of files, taken in a thread of their own, because the front must go on answering. */
import { Worker } from 'node:worker_threads';
import type { DigestTask, FileFacts } from './digest-thread.js';

export type { FileFacts } from './digest-thread.js';

/** The facts of a model and of the files that hold its weights. Rejects if one cannot be read. */
export function modelFacts(model: string): Promise<FileFacts[]> {
  return inThread({ paths: [model], isModel: true });
}

/** Rejects if a file cannot be read. */
export function fileFacts(paths: readonly string[]): Promise<FileFacts[]> {
  return inThread({ paths, isModel: false });
}

function inThread(workerData: DigestTask): Promise<FileFacts[]> {
  const thread = new Worker(new URL('./digest-thread.js', import.meta.url), { workerData });
  return new Promise((resolve, reject) => {
    thread.on('message', resolve);
    thread.on('error', reject);
  });
}
