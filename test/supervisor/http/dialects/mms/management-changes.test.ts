/** What a registration says when somebody else changes the same model meanwhile. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../../../../../protocol/errors.js';
import type { Ask } from '../../../../../supervisor/http/request/request-context.js';
import type { AnswerContext } from '../../../../../supervisor/http/answer/koa-answers.js';
import type { ModelsAdmin, ScaleEnd } from '../../../../../supervisor/http/request/model-management.js';
import { register } from '../../../../../supervisor/http/dialects/mms/management-changes.js';

const REF = { name: 'm', version: '1' };
const FAILED: ScaleEnd = { result: 'failed', wanted: 1, ready: 0, error: null };

/** A registration that waits for one worker, and what it asks of the server. */
async function registerWith(scale: ModelsAdmin['scale']): Promise<{ error: unknown; unregistered: number }> {
  let unregistered = 0;
  const admin = {
    register: () => Promise.resolve(REF),
    scale,
    unregister: () => {
      unregistered += 1;
      return Promise.resolve('gone');
    },
  };
  const models = { find: () => ({ spec: REF }), leaving: () => null };
  const request = { method: 'POST', url: '/models?url=m.mjs&initial_workers=1', headers: {} };
  const response = { socket: {}, once: () => {} };
  const backend = { admin, models, options: {} };
  const ask = { request, response, path: '/models', model: null, backend } as unknown as Ask;
  const error: unknown = await register({} as AnswerContext, ask).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  return { error, unregistered };
}

test('a model that was unregistered before it got its workers is not there, in the words of Multi Model Server', async () => {
  const { error } = await registerWith(() => {
    throw new ServeError('SERVE_MODEL_NOT_FOUND', 'There is no model "m"; this server has none.');
  });
  assert.ok(error instanceof ServeError);
  assert.deepEqual([error.code, error.message], ['SERVE_MODEL_NOT_FOUND', 'Model not found: m']);
});

for (const [isLastWord, unregistered, what] of [
  [true, 1, 'is taken back'],
  [false, 0, 'stays if somebody has asked something else of it since'],
] as const)
  test(`a model whose workers cannot start ${what}`, async () => {
    const settled = Promise.resolve(FAILED);
    const said = await registerWith(() => ({ accepted: REF, settled, isLastWord: () => isLastWord }));
    assert.ok(said.error instanceof ServeError);
    assert.deepEqual([said.error.message, said.unregistered], ['Failed to start workers', unregistered]);
  });
