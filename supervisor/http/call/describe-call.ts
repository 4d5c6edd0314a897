/** The call that a request makes of a worker: everything but its body. */
import type { IncomingMessage } from 'node:http';
import { joinHeaderLines } from '../../../protocol/header-lines.js';
import type { Format } from '../../../protocol/messages.js';
import type { JobCall } from '../../dispatch/job.js';

export interface CallTarget {
  readonly route: string;
  /** Of the request, as `pathOf` reads it. */
  readonly path: string;
  readonly format: Format;
}

export function describeCall(
  request: IncomingMessage,
  requestId: string,
  { route, path, format }: CallTarget,
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
    path,
    query: question < 0 ? '' : url.slice(question + 1),
    format,
    contentType: headers['content-type'] ?? '',
    accept: headers.accept ?? '',
    deadlineMs: deadlineMs === null ? null : Date.now() + deadlineMs,
    headers: joinHeaderLines(rawHeaders),
  };
}
