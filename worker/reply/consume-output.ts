/** Runs the example's output through the encoders, so that a wrong output fails before the worker is ready. */
import type { Call } from '../../protocol/wire/messages.js';
import { encodeOutput } from './encode-output.js';
import { isPotassiumResponse, replyOfResponse } from './potassium-response.js';
import { iteratorOf, sendStream, type StreamOut } from './stream.js';
import { isResponse, responseHead } from './web-response.js';

/** Encodes a value, or every item of a stream. Rejects with the error that a caller would get. */
export async function consumeOutput(output: unknown, call: Call): Promise<void> {
  if (output instanceof Error) throw output;
  if (isResponse(output)) {
    responseHead(output);
    await output.arrayBuffer();
    return;
  }
  if (isPotassiumResponse(output)) {
    const { body } = replyOfResponse(output);
    if (body.kind === 'json') await encodeOutput(body.value, call);
    return;
  }
  const iterator = iteratorOf(output);
  if (iterator === null) await encodeOutput(output, call);
  else await sendStream(iterator, call.accept, null, NOWHERE);
}

/** The receiver of the example's stream, which takes everything. */
const NOWHERE: StreamOut = { head: () => {}, chunk: () => {}, wait: () => null, cancelled: false };
