/** Writes a batch to its worker, as consecutive `call` frames of which the last is marked. */
import type { Channel } from '../../protocol/wire/channel.js';
import { MAX_FRAGMENT_BYTES, MAX_HEAD_BYTES } from '../../protocol/wire/messages.js';
import type { Job, JobCall } from '../dispatch/job.js';

/** Bytes of a head beside its calls, and of a call beside its texts. */
const SMALL_FIELDS_BYTES = 128;

/** Most bytes of a JavaScript character in UTF-8. */
const MAX_CHAR_BYTES = 3;

/** `number` names the batch on the wire. */
export function sendBatch(channel: Channel, number: number, jobs: readonly Job[]): void {
  if (jobs.length === 1) {
    sendAlone(channel, number, jobs[0] as Job);
    return;
  }
  // A frame that waits behind others may be taken back, and its mark with it: so the mark gets its own frame.
  const mayWait = channel.hasTransfers || jobs.some(({ bodyBytes }) => bodyBytes > MAX_FRAGMENT_BYTES);
  const frames = mayWait ? jobs.map((job) => [job]) : framesOf(jobs);
  frames.forEach((frame, i) => sendFrame(channel, number, frame, !mayWait && i === frames.length - 1));
  if (mayWait) sendFrame(channel, number, [], true);
}

/** The usual case, without the arrays that only several calls need. */
function sendAlone(channel: Channel, batch: number, { call, pieces, bodyBytes }: Job): void {
  const frame = { type: 'call', calls: [call], inlineBytes: [bodyBytes], batch, last: true } as const;
  channel.sendBody(frame, call.id, pieces, bodyBytes);
}

function sendFrame(channel: Channel, batch: number, jobs: readonly Job[], last: boolean): void {
  const calls = jobs.map(({ call }) => call);
  const inlineBytes = jobs.map(({ bodyBytes }) => bodyBytes);
  const pieces = jobs.flatMap((job) => job.pieces);
  const bytes = inlineBytes.reduce((sum, one) => sum + one, 0);
  channel.sendBody({ type: 'call', calls, inlineBytes, batch, last }, calls[0]?.id ?? 0, pieces, bytes);
}

/** Puts as many calls into each frame as its head and body can hold; each body fits into a frame. */
function framesOf(jobs: readonly Job[]): Job[][] {
  const frames: Job[][] = [];
  let frame: Job[] = [];
  let headBytes = 0;
  let bodyBytes = 0;
  for (const job of jobs) {
    headBytes += headBytesOf(job.call);
    bodyBytes += job.bodyBytes;
    if (frame.length === 0 || bodyBytes > MAX_FRAGMENT_BYTES || headBytes > MAX_HEAD_BYTES) {
      frame = [];
      frames.push(frame);
      headBytes = SMALL_FIELDS_BYTES + headBytesOf(job.call);
      bodyBytes = job.bodyBytes;
    }
    frame.push(job);
  }
  return frames;
}

/** Most bytes that the call may take in a head. */
function headBytesOf(call: JobCall): number {
  const { requestId, route, path, query, contentType, accept, headers, method, params } = call;
  const texts = [requestId, route, path, query, contentType, accept, headers, method, params];
  return SMALL_FIELDS_BYTES + MAX_CHAR_BYTES * texts.reduce((sum, { length }) => sum + length, 0);
}
