/** Encodes and decodes the calls of a `call` frame. */
import { Fields, malformed } from './fields.js';
import type { Call, CallFrame } from './messages.js';

/** The method of nearly every call, which is left out of its head. */
const USUAL_METHOD = 'POST';

/** The format of nearly every answer, by the value and the client's Accept header. */
const USUAL_ANSWER = 'auto';

export function callFields(call: Call, inlineBytes: number): unknown[] {
  const { method, params, asciiJson, answer, dialectParams, job } = call;
  const isOfDialect = answer !== USUAL_ANSWER || dialectParams !== '';
  const fields: unknown[] = [
    call.id,
    call.bodyBytes,
    inlineBytes,
    call.requestId,
    call.route,
    call.path,
    call.query,
    call.format,
    call.contentType,
    call.accept,
    call.deadlineMs,
    call.headers,
  ];
  if (job !== undefined) fields.push(method, params, asciiJson, answer, dialectParams, job.id, job.attempt);
  else if (isOfDialect) fields.push(method, params, asciiJson, answer, dialectParams);
  else if (method !== USUAL_METHOD || params !== '' || asciiJson) fields.push(method, params, asciiJson);
  return fields;
}

/** @throws SERVE_PROTOCOL */
export function readCalls(frame: Fields): CallFrame {
  const calls: Call[] = [];
  const inlineBytes: number[] = [];
  for (const item of frame.array(1)) {
    if (!Array.isArray(item)) throw malformed('a call is not an array');
    const f = new Fields(item);
    calls.push({
      id: f.uint(0),
      bodyBytes: f.uint(1),
      requestId: f.string(3),
      route: f.string(4),
      path: f.string(5),
      query: f.string(6),
      format: f.string(7),
      contentType: f.string(8),
      accept: f.string(9),
      deadlineMs: f.numberOrNull(10),
      headers: f.string(11),
      method: f.stringOr(12, USUAL_METHOD),
      params: f.stringOr(13, ''),
      asciiJson: f.booleanOrFalse(14),
      answer: f.stringOr(15, USUAL_ANSWER),
      dialectParams: f.stringOr(16, ''),
      ...(f.length > 17 ? { job: { id: f.string(17), attempt: f.positive(18) } } : {}),
    });
    inlineBytes.push(f.uint(2));
  }
  const last = frame.boolean(3);
  if (calls.length === 0 && !last) throw malformed('a call frame has no calls and does not end a batch');
  return { type: 'call', calls, inlineBytes, batch: frame.uint(2), last };
}
