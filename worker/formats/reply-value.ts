/** The value of an app's answer, for formats that write their own body around it. */
import { ServeError } from '../../protocol/errors.js';
import { mediaType } from '../../protocol/text/headers.js';
import { errorText } from './error-text.js';
import type { Reply, ReplyBody } from './reply.js';

/** @throws SERVE_HTTP_ERROR with the status of an error that the app has answered itself */
export function assertNoError(answer: Reply): void {
  const { status } = answer.head;
  if (status < 400) return;
  throw new ServeError('SERVE_HTTP_ERROR', errorText(answer) || undefined, { status });
}

/** The value of a whole answer; a body of JSON or text is read, because the caller sees no content type. */
export function valueOf(body: Exclude<ReplyBody, { kind: 'stream' }>, contentType: string): unknown {
  if (body.kind !== 'bytes') return body.value;
  const type = mediaType(contentType);
  if (type === 'application/json') return JSON.parse(Buffer.from(body.bytes).toString()) as unknown;
  return type.startsWith('text/') ? Buffer.from(body.bytes).toString() : body.bytes;
}
