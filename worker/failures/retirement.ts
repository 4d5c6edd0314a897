/** When a worker gives itself up: its app's process is in doubt, and a new one would do better. */
import { ServeError } from '../../protocol/errors.js';
import { isServeError } from './failure.js';
import { isOutOfMemory, lossOfGpu } from './outlook.js';

/** One input may be too large; a process that finds no memory for three in a row has lost it to something else. */
const MOST_OUT_OF_MEMORY = 3;

export class Retirement {
  /** Calls without memory, one after the other. */
  #outOfMemory = 0;

  /** `thrown`: by the app in the call that has ended; undefined if nothing was. Returns why the worker should end, if it should. */
  afterCall(thrown: unknown): ServeError | null {
    if (thrown === undefined) {
      this.#outOfMemory = 0;
      return null;
    }
    if (isServeError(thrown)) return null; // a body that could not be read, an output that could not be encoded
    const loss = lossOfGpu(thrown);
    if (loss !== undefined) return lost(`the GPU is lost to this process: ${firstLine(loss)}`);
    this.#outOfMemory = isOutOfMemory(thrown) ? this.#outOfMemory + 1 : 0;
    if (this.#outOfMemory < MOST_OUT_OF_MEMORY) return null;
    return lost(`the app found no memory for ${MOST_OUT_OF_MEMORY} calls in a row`);
  }
}

function lost(message: string): ServeError {
  return new ServeError('SERVE_WORKER_LOST', message);
}

function firstLine(message: string): string {
  return (message.split('\n', 1)[0] as string).slice(0, 300);
}
