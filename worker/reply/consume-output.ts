/** Runs the example's output through the encoders, so that a wrong one fails before the worker is ready. */
import type { Call } from '../../protocol/messages.js';
import { encodeOutput } from './encode-output.js';
import { iteratorOf } from './stream.js';
import { isResponse } from './web-response.js';

/** Drains a stream, encodes a value. Rejects with what a caller would have got as an error. */
export async function consumeOutput(output: unknown, call: Call): Promise<void> {
  if (output instanceof Error) throw output;
  if (isResponse(output)) {
    await output.arrayBuffer();
    return;
  }
  const iterator = iteratorOf(output);
  if (iterator === null) {
    await encodeOutput(output, call);
    return;
  }
  while ((await iterator.next()).done !== true);
}
