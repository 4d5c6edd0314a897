/** Describes the call that a request makes of a worker: everything but its body. */
import type { IncomingMessage } from 'node:http';
import { joinHeaderLines } from '../../../protocol/header-lines.js';
import type { Format } from '../../../protocol/messages.js';
import type { JobCall } from '../../dispatch/job.js';
import { writtenPath } from '../socket/request-facts.js';

export interface CallTarget {
  readonly route: string;
  readonly format: Format;
}

export function describeCall(
  request: IncomingMessage,
  requestId: string,
  { route, format }: CallTarget,
  deadlineMs: number | null,
  bodyBytes: number,
): JobCall {
  const { headers, rawHeaders } = request;
  const url = request.url ?? '/';
  const question = url.indexOf('?');
  return {
    id: 0,
    bodyBytes,
    requestId,
    route,
    path: writtenPath(url),
    query: question < 0 ? '' : url.slice(question + 1),
    format,
    contentType: headers['content-type'] ?? '',
    accept: headers.accept ?? '',
    deadlineMs: deadlineMs === null ? null : Date.now() + deadlineMs,
    headers: joinHeaderLines(rawHeaders),
  };
}
