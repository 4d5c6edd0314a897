/** Decides when a worker ends itself because its process is in doubt and a new one would do better. */
import { ServeError } from '../../protocol/errors.js';
import { isServeError } from './failure.js';
import { isOutOfMemory, lossOfGpu } from './outlook.js';

/**
 * One input may be too large; a process that runs out of memory in three calls in a row has lost it to something else.
 */
const MOST_OUT_OF_MEMORY = 3;

export class Retirement {
  /** Number of calls in a row that ran out of memory. */
  #outOfMemory = 0;

  /**
   * `thrown` is the error of the app in the call that has ended; undefined if there was none. Returns the reason why
   * the worker should end, or null.
   */
  afterCall(thrown: unknown): ServeError | null {
    if (thrown === undefined) {
      this.#outOfMemory = 0;
      return null;
    }
    // A body that could not be read, an output that could not be encoded.
    if (isServeError(thrown) && thrown.code !== 'SERVE_INFERENCE_FAILED') return null;
    const loss = lossOfGpu(thrown);
    if (loss !== undefined) return lost(`this process can no longer use its GPU: ${firstLine(loss)}`);
    this.#outOfMemory = isOutOfMemory(thrown) ? this.#outOfMemory + 1 : 0;
    if (this.#outOfMemory < MOST_OUT_OF_MEMORY) return null;
    return lost(`the app ran out of memory in ${MOST_OUT_OF_MEMORY} calls in a row`);
  }
}

function lost(message: string): ServeError {
  return new ServeError('SERVE_WORKER_LOST', message);
}

function firstLine(message: string): string {
  return (message.split('\n', 1)[0] as string).slice(0, 300);
}
