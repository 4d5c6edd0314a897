/** Calls for tests of the worker, with nothing in them that a test does not name. */
import type { AppMetrics } from '../../worker/api/types.js';
import type { Call } from '../../protocol/wire/messages.js';

export function callWith(fields: Partial<Call> = {}): Call {
  return {
    id: 1,
    bodyBytes: 0,
    requestId: 'req-1',
    route: '/',
    path: '/',
    query: '',
    format: 'auto',
    contentType: 'application/json',
    accept: '*/*',
    deadlineMs: null,
    headers: '',
    method: 'POST',
    params: '',
    asciiJson: false,
    answer: 'auto',
    dialectParams: '',
    ...fields,
  };
}

/** Metrics that are not recorded. */
export const NO_METRICS: AppMetrics = { counter: () => {}, gauge: () => {}, histogram: () => {} };
