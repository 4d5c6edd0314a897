import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../../../protocol/errors.js';
import { ModelLog } from '../../../supervisor/models/model-log.js';
import { createLog } from '../../../supervisor/observe/log.js';
import type { OutputWriter } from '../../../supervisor/observe/output-writer.js';
import { newCall } from '../dispatch/calls.js';

test('the line of a failed call has its method, path, client, request id and status', () => {
  const lines: string[] = [];
  const writer = { writableLength: 0, writeLines: (line: string) => lines.push(line) };
  const log = createLog('json', 'info', writer as unknown as OutputWriter);
  const { message } = newCall('failed-1');
  new ModelLog(log, () => '').callError(2, message, new ServeError('SERVE_INFERENCE_FAILED'));
  const line = JSON.parse(lines[0] as string) as Record<string, unknown>;
  const { level, requestId, method, path, client, status, code } = line;
  assert.deepEqual(
    [level, requestId, method, path, client, status, code],
    ['error', 'failed-1', 'POST', '/', '127.0.0.1', 500, 'SERVE_INFERENCE_FAILED'],
  );
});
