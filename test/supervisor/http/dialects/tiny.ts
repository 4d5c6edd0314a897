/**
 * A dialect of forty lines: `PUT /x/{model}/{route*}`, and WebSockets there, with errors as lines of text. The client
 * names the formats of body and answer; the dialect's own is `test/worker/formats/tiny.ts`.
 */
import { ServeError } from '../../../../protocol/errors.js';
import { pathTable } from '../../../../supervisor/http/call/path-table.js';
import type { Dialect, Operation } from '../../../../supervisor/http/dialects/dialect.js';

const PATH = '/x/{model}/{route*}';
const find = pathTable({ [PATH]: null });

export const tiny: Dialect = {
  name: 'tiny',
  paths: new Map([[PATH, 'PUT']]),

  claim({ request: { method, headers }, path, isWebSocket }, models) {
    const found = find(path);
    if (found === null) return null;
    const operation = (act: Operation['act']): Operation => ({
      auth: 'call',
      counts: method === 'PUT',
      methods: 'PUT',
      act,
    });
    if (method !== 'PUT' && !isWebSocket)
      return operation({ refuse: new ServeError('SERVE_METHOD_NOT_ALLOWED') });
    const { model: name = '', route = '' } = found.params;
    const target = { model: models.find({ name }), route: `/${route}` };
    if (isWebSocket) return operation({ target, format: 'websocket', params: found.params });
    const format = String(headers['x-format'] ?? 'auto');
    const answer = String(headers['x-answer'] ?? 'auto');
    return operation({ target, format, answer, params: found.params, dialectParams: { model: name } });
  },

  fail({ code, message }, requestId) {
    return {
      status: code === 'SERVE_INFERENCE_FAILED' ? 599 : 418,
      phrase: 'Tiny Trouble',
      headers: { 'Content-Type': 'text/plain', 'X-Code': code },
      body: Buffer.from(`${code} ${requestId}: ${message}\n`),
    };
  },

  headers: () => ({ 'X-Dialect': 'tiny' }),
  describe: () => [],
};
