/** Describes any answer of an app as a `Reply`, for a format that writes whole answers. */
import { PLAIN_HEAD, Reply } from '../formats/reply.js';
import { isPotassiumResponse, replyOfResponse } from './potassium-response.js';
import { iteratorOf } from './stream.js';
import { isResponse, responseBody, responseHead } from './web-response.js';

/** Nothing is encoded yet. Rejects with the error of an answer that cannot be sent. */
export async function replyOf(output: unknown): Promise<Reply> {
  if (output instanceof Reply) return output;
  if (isPotassiumResponse(output)) return replyOfResponse(output);
  if (isResponse(output)) return new Reply(responseHead(output), await responseBody(output));
  const iterator = iteratorOf(output);
  if (iterator === null) return new Reply(PLAIN_HEAD, { kind: 'value', value: output });
  return new Reply(PLAIN_HEAD, { kind: 'stream', iterator, byAccept: true });
}

/** Whether it is a Response, which answers a call also if it is thrown. */
export function isAnswer(thrown: unknown): boolean {
  return isResponse(thrown) || isPotassiumResponse(thrown);
}
