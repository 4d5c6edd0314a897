/** A registration over HTTP whose model does not get its workers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../../../../../protocol/errors.js';
import type { RequestContext } from '../../../../../supervisor/http/request/request-context.js';
import type { AnswerContext } from '../../../../../supervisor/http/answer/koa-answers.js';
import type { ModelManagement } from '../../../../../supervisor/http/request/model-management.js';
import type { Outcome } from '../../../../../supervisor/models/models.js';
import { register } from '../../../../../supervisor/http/dialects/mms/management-changes.js';

const REF = { name: 'm', version: '1' };
/** Returns the error of a registration that waits for one worker; null if there is none. */
async function registerWith(start: ModelManagement['start']): Promise<unknown> {
  const modelManagement = { boundsFor: () => ({ min: 1, max: 1 }), start };
  const storedModels = { register: () => Promise.resolve(REF) };
  const models = { find: () => ({ spec: REF }), leaving: () => null };
  const request = { method: 'POST', url: '/models?url=m.mjs&initial_workers=1', headers: {} };
  const response = { socket: {}, once: () => {} };
  const backend = { modelManagement, storedModels, models, options: {} };
  const context = { request, response, path: '/models', model: null, backend } as unknown as RequestContext;
  return register({} as AnswerContext, context).then(
    () => null,
    (thrown: unknown) => thrown,
  );
}

test('a registration whose model is unregistered meanwhile gets the "not found" of Multi Model Server', async () => {
  const error = await registerWith(() => {
    throw new ServeError('SERVE_MODEL_NOT_FOUND', 'There is no model "m"; this server has none.');
  });
  assert.ok(error instanceof ServeError);
  assert.deepEqual([error.code, error.message], ['SERVE_MODEL_NOT_FOUND', 'Model not found: m']);
});

test('a registration whose workers cannot start fails', async () => {
  const outcome: Outcome = { result: 'failed', wanted: 1, ready: 0, error: null };
  const error = await registerWith(() => ({ accepted: REF, settled: Promise.resolve(outcome) }));
  assert.ok(error instanceof ServeError);
  assert.deepEqual([error.code, error.message], ['SERVE_INIT_FAILED', 'Failed to start workers']);
});
