/** Runs the example's output through the encoders, so that a wrong output fails before the worker is ready. */
import type { Call } from '../../protocol/wire/messages.js';
import { encodeOutput } from './encode-output.js';
import { isPotassiumResponse } from './potassium-response.js';
import { replyOf } from './reply-of.js';
import { sendStream, type StreamOut } from './stream.js';

/** Encodes a value, or every item of a stream. Rejects with the error that a caller would get. */
export async function consumeOutput(output: unknown, call: Call): Promise<void> {
  if (output instanceof Error) throw output;
  const { head, body } = await replyOf(output);
  if (body.kind === 'bytes') return;
  if (body.kind !== 'stream') await encodeOutput(body.value, call);
  else if (!isPotassiumResponse(output))
    await sendStream(body.iterator, call.accept, body.byAccept === true ? null : head, NOWHERE);
}

/** The receiver of the example's stream, which takes everything. */
const NOWHERE: StreamOut = { head: () => {}, chunk: () => {}, wait: () => null, cancelled: false };
