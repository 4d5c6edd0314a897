/** Whether the operator asks for batches of one model: then a model without code may be joined that does not say so. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { asksForBatches } from '../../../supervisor/models/model-spec.js';
import { readModelEntry } from '../../../supervisor/options/read-objects.js';
import { resolveModelOptions, resolveOptions } from '../../../supervisor/options/resolve.js';
import { planFirstModels } from '../../../supervisor/plan/first-models.js';
import { appFolder } from '../../worker/app-folder.js';

/** For each of the models `a` and `b` that have own options, whether it is asked. */
async function asked(
  t: TestContext,
  flags: Readonly<Record<string, unknown>>,
  models: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
): Promise<Readonly<Record<string, boolean>>> {
  const cwd = appFolder(t, { 'app.mjs': 'export const inference = () => 1;' });
  const keys = { where: String, isProgram: true };
  const entries = Object.entries(models).map(([name, own]) =>
    readModelEntry(name, { app: './app.mjs', ...own }, name, keys),
  );
  const resolved = resolveOptions([{ values: flags, where: (name) => `--${name}` }]);
  const given = { app: null, appPlace: '', workerCommand: null, isMmsMode: false };
  const { plans, store } = await planFirstModels({
    ...given,
    hasWholeUrls: false,
    firstWorkers: null,
    stop: undefined,
    entries,
    cwd,
    resolved,
  });
  store.close();
  return Object.fromEntries(plans.map(({ spec }) => [spec.name, asksForBatches(spec)]));
}

test('by its own entry', async (t) => {
  const got = await asked(t, {}, { a: { batchSize: 8 }, b: {}, c: { batchSize: 1 } });
  assert.deepEqual(got, { a: true, b: false, c: false });
});

test('by the flag if the server has one model', async (t) => {
  assert.deepEqual(await asked(t, { batchSize: 8 }, { a: {} }), { a: true });
  assert.deepEqual(await asked(t, { batchSize: 8 }, { a: {}, b: {} }), { a: false, b: false });
  assert.deepEqual(await asked(t, {}, { a: {} }), { a: false });
});

test('by a registration, over what was before', () => {
  const server = resolveOptions([{ values: { batchSize: 8 }, where: (name) => name }]);
  const own = (values: object) => resolveModelOptions(server, { values: { ...values }, where: String }, 'm');
  assert.equal(asksForBatches({ resolved: own({}) }), false);
  const changed = own({ batchSize: 4 });
  assert.equal(asksForBatches({ resolved: changed }), true);
  const later = resolveModelOptions(changed, { values: { runTimeout: '1s' }, where: String }, 'm');
  assert.equal(asksForBatches({ resolved: later }), true);
});
