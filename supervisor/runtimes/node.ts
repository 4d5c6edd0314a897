/** Apps in JavaScript and TypeScript: Node with our own worker. */
import { fileURLToPath } from 'node:url';

const WORKER_ENTRY = fileURLToPath(new URL('../../worker/main.js', import.meta.url));

/** Program and arguments of a worker; the app is named in the frame `start`. */
export const NODE_WORKER: readonly string[] = [process.execPath, WORKER_ENTRY];
