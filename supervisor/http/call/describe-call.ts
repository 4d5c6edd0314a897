/** Builds the call frame's fields for a request: everything that the worker gets except the body. */
import { joinHeaderLines } from '../../../protocol/text/header-lines.js';
import type { JobCall } from '../../dispatch/job.js';
import { codingsOf } from '../socket/decode-body.js';
import { clientOf, writtenPath } from '../socket/request-facts.js';
import type { RequestContext } from '../request/request-context.js';
import type { CallPlan, NamedTarget } from './call-plan.js';

export function describeCall(
  context: RequestContext,
  { format, params, asciiJson = false, answer = 'auto', dialectParams }: CallPlan,
  { model, route }: NamedTarget,
  deadlineMs: number | null,
  bodyBytes: number,
): JobCall {
  const { request, requestId } = context;
  const { headers, rawHeaders } = request;
  const url = request.url ?? '/';
  const question = url.indexOf('?');
  const { name, version } = model.spec;
  return {
    id: 0,
    model: name,
    version,
    client: clientOf(request),
    statusOf: (error) => context.dialect.fail(error, requestId, context).status,
    bodyBytes,
    requestId,
    route,
    path: writtenPath(url),
    query: question < 0 ? '' : url.slice(question + 1),
    format,
    contentType: headers['content-type'] ?? '',
    accept: headers.accept ?? '',
    deadlineMs: deadlineMs === null ? null : Date.now() + deadlineMs,
    headers: joinHeaderLines(codingsOf(request).length === 0 ? rawHeaders : withoutCoding(rawHeaders)),
    method: request.method ?? '',
    params: typeof params === 'object' ? encoded(params) : (params ?? ''),
    asciiJson,
    answer,
    dialectParams: dialectParams === undefined ? '' : encoded(dialectParams),
  };
}

function encoded(params: Readonly<Record<string, string>>): string {
  return new URLSearchParams(params).toString();
}

/** Leaves out the headers that describe the encoded body, because the worker gets the body decoded. */
function withoutCoding(rawHeaders: readonly string[]): string[] {
  return rawHeaders.filter((_, i) => !OF_CODING.has((rawHeaders[i - (i % 2)] as string).toLowerCase()));
}

const OF_CODING: ReadonlySet<string> = new Set(['content-encoding', 'content-length', 'transfer-encoding']);
