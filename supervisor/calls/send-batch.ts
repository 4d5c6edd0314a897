/** Writes a batch to its worker, as consecutive `call` frames of which the last is marked. */
import type { Channel } from '../../protocol/wire/channel.js';
import { MAX_FRAGMENT_BYTES, MAX_HEAD_BYTES } from '../../protocol/wire/messages.js';
import type { Call, CallMessage } from '../dispatch/call.js';

/** Bytes of a head beside its calls, and of a call beside its texts. */
const SMALL_FIELDS_BYTES = 128;

/** Most bytes of a JavaScript character in UTF-8. */
const MAX_CHAR_BYTES = 3;

/** `number` names the batch on the wire. */
export function sendBatch(channel: Channel, number: number, calls: readonly Call[]): void {
  if (calls.length === 1) {
    sendAlone(channel, number, calls[0] as Call);
    return;
  }
  // A frame that waits behind others may be taken back, and its mark with it: so the mark gets its own frame.
  const mayWait = channel.hasTransfers || calls.some(({ bodyBytes }) => bodyBytes > MAX_FRAGMENT_BYTES);
  const frames = mayWait ? calls.map((call) => [call]) : framesOf(calls);
  frames.forEach((frame, i) => sendFrame(channel, number, frame, !mayWait && i === frames.length - 1));
  if (mayWait) sendFrame(channel, number, [], true);
}

/** The usual case, without the arrays that only several calls need. */
function sendAlone(channel: Channel, batch: number, { message, pieces, bodyBytes }: Call): void {
  const frame = { type: 'call', calls: [message], inlineBytes: [bodyBytes], batch, last: true } as const;
  channel.sendBody(frame, message.id, pieces, bodyBytes);
}

function sendFrame(channel: Channel, batch: number, calls: readonly Call[], last: boolean): void {
  const messages = calls.map(({ message }) => message);
  const inlineBytes = calls.map(({ bodyBytes }) => bodyBytes);
  const pieces = calls.flatMap((call) => call.pieces);
  const bytes = inlineBytes.reduce((sum, one) => sum + one, 0);
  channel.sendBody(
    { type: 'call', calls: messages, inlineBytes, batch, last },
    messages[0]?.id ?? 0,
    pieces,
    bytes,
  );
}

/** Puts as many calls into each frame as its head and body can hold; each body fits into a frame. */
function framesOf(calls: readonly Call[]): Call[][] {
  const frames: Call[][] = [];
  let frame: Call[] = [];
  let headBytes = 0;
  let bodyBytes = 0;
  for (const call of calls) {
    headBytes += headBytesOf(call.message);
    bodyBytes += call.bodyBytes;
    if (frame.length === 0 || bodyBytes > MAX_FRAGMENT_BYTES || headBytes > MAX_HEAD_BYTES) {
      frame = [];
      frames.push(frame);
      headBytes = SMALL_FIELDS_BYTES + headBytesOf(call.message);
      bodyBytes = call.bodyBytes;
    }
    frame.push(call);
  }
  return frames;
}

/** Most bytes that the call may take in a head. */
function headBytesOf(message: CallMessage): number {
  const { requestId, route, path, query, contentType, accept, headers, method, params } = message;
  const texts = [requestId, route, path, query, contentType, accept, headers, method, params];
  return SMALL_FIELDS_BYTES + MAX_CHAR_BYTES * texts.reduce((sum, { length }) => sum + length, 0);
}
