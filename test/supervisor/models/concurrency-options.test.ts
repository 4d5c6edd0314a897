/** Options of calls that run at the same time, as a model applies them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LoadedInfo } from '../../../protocol/wire/messages.js';
import { Generation } from '../../../supervisor/models/generations.js';
import { needsNewWorkers } from '../../../supervisor/models/generations.js';
import type { ModelSpec } from '../../../supervisor/models/model-spec.js';
import { resolveOptions } from '../../../supervisor/options/resolve.js';

function specWith(values: Readonly<Record<string, unknown>>): ModelSpec {
  const resolved = resolveOptions([{ values, where: (name) => `banana.json: ${name}` }]);
  return {
    name: 'm',
    version: '1',
    app: '/srv/app.ts',
    appPlace: '',
    service: null,
    program: {},
    resolved,
  } as unknown as ModelSpec;
}

const INFO: LoadedInfo = { routes: [], modelOptions: {}, example: '', concurrency: 8 };

test('a worker gets the ceiling when it starts, so another one needs new workers', () => {
  assert.equal(needsNewWorkers(specWith({}), specWith({ concurrency: 4 })), true);
  assert.equal(
    needsNewWorkers(specWith({ concurrency: 4 }), specWith({ concurrency: 4, queueSize: 7 })),
    false,
  );
});

test('the batch size of the operator and the concurrency of the app are an error that names both', () => {
  const app = new Generation(specWith({ batchSize: 4 }));
  assert.throws(
    () => app.update(INFO),
    /^ServeError: \/srv\/app\.ts: config\.concurrency is 8 and banana\.json: batchSize is 4, .* Set --concurrency 1 or a batch size of 1\.$/,
  );
  app.update({ ...INFO, concurrency: 1 });
  assert.equal(app.options.batchSize, 4);
});

test('options that would bring batches are refused while the app runs calls at the same time', () => {
  const app = new Generation(specWith({}));
  app.update(INFO);
  assert.throws(() => app.withOptionsOf(specWith({ batchSize: 2 })), { code: 'SERVE_CONFIG' });
});
