/** ModelAdmin with fake models. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../../../../protocol/errors.js';
import type { ManagedModel } from '../../../../supervisor/models/model.js';
import type { Outcome, WorkerBounds } from '../../../../supervisor/models/models.js';
import { resolveOptions } from '../../../../supervisor/options/resolve.js';
import { ModelAdmin } from '../../../../supervisor/server/models/admin.js';

const REF = { name: 'm', version: '1' };
const LIMITS = { finishMs: 1000, graceMs: 0 };

/** A model whose workers cannot start. */
class LatchedModel {
  readonly spec = REF;
  readonly options = { initTimeout: 60_000 };
  readonly crew = { wanted: 0, running: 0, ready: [] };
  readonly sizing = { bounds: null };
  readonly health = {
    takesCalls: false,
    whenFirstFailed: (ended: Promise<unknown>) => this.#whenFailed(ended),
    whenOneFails: (ended: Promise<unknown>) => this.#whenFailed(ended),
  };
  /** Called before the failure is known: another request may come meanwhile. */
  meanwhile: () => void = () => {};

  scale({ min: count }: WorkerBounds): Promise<Outcome> {
    this.crew.wanted = count;
    return Promise.resolve({ result: count === 0 ? 'done' : 'failed', wanted: count, ready: 0, error: null });
  }

  async #whenFailed(ended: Promise<unknown>): Promise<ServeError | null> {
    await ended;
    this.meanwhile();
    return this.crew.wanted === 0 ? null : new ServeError('SERVE_INIT_FAILED');
  }

  rejectCalls(): void {}
  close(): void {}
}

function manage(model: LatchedModel): ModelAdmin {
  const resolved = resolveOptions([{ values: { unregisterTimeout: '1s' }, where: (name) => name }]);
  const gate = { isIdle: false, onIdle: () => {} };
  const resources = { gate, memory: null, log: { error: () => {} }, retireLimits: LIMITS };
  const admin = new ModelAdmin(resolved, false, resources as never, () => {});
  admin.registry.addFirst(model as unknown as ManagedModel, false);
  return admin;
}

const outcomeOf = async (model: LatchedModel, admin: ModelAdmin): Promise<Outcome> =>
  admin.start(model.spec, { min: 1, max: 1 }).settled;

test('a model whose first workers cannot start is unregistered again', async () => {
  const model = new LatchedModel();
  const admin = manage(model);
  assert.equal((await outcomeOf(model, admin)).result, 'failed');
  assert.deepEqual([...admin.registry.all()], []);
});

test('a model whose first workers cannot start stays if another request scaled it in the meantime', async () => {
  const model = new LatchedModel();
  const admin = manage(model);
  model.meanwhile = () => {
    model.meanwhile = () => {};
    admin.scale(REF, { min: 2, max: 2 }, 0);
  };
  assert.equal((await outcomeOf(model, admin)).result, 'failed');
  assert.deepEqual([...admin.registry.all()], [model]);
});

test('a model that another request unregistered in the meantime is SERVE_MODEL_NOT_FOUND, not a failed start', async () => {
  const model = new LatchedModel();
  const admin = manage(model);
  model.meanwhile = () => {
    model.meanwhile = () => {};
    void admin.unregister(REF, 0);
  };
  const { result, error } = await outcomeOf(model, admin);
  assert.deepEqual([result, error?.code], ['failed', 'SERVE_MODEL_NOT_FOUND']);
});

test('an unregistration without a time limit is unfinished at once', async () => {
  const admin = manage(new LatchedModel());
  assert.equal((await admin.unregister(REF, 0).settled).result, 'unfinished');
});
