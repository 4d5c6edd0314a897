/** HttpManagement with a registry of fake models. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../../../../protocol/errors.js';
import {
  Models,
  type ManagedModel,
  type Outcome,
  type WorkerBounds,
} from '../../../../supervisor/models/models.js';
import {
  HttpManagement,
  type ManagementParts,
} from '../../../../supervisor/server/models/http-management.js';
import type { ServedModels } from '../../../../supervisor/server/models/served-models.js';

const REF = { name: 'm', version: '1' };

/** A model whose workers cannot start. */
class LatchedModel {
  readonly spec = REF;
  readonly options = { initTimeout: 60_000 };
  readonly runningWorkers = 0;
  readonly bounds = null;
  readonly readyWorkers = 0;
  wantedWorkers = 0;
  /** Called before the failure is known: another request may come meanwhile. */
  meanwhile: () => void = () => {};

  scale({ min: count }: WorkerBounds): Promise<Outcome> {
    this.wantedWorkers = count;
    return Promise.resolve({ result: count === 0 ? 'done' : 'failed', wanted: count, ready: 0, error: null });
  }

  async whenFirstFailed(ended: Promise<unknown>): Promise<ServeError | null> {
    await ended;
    this.meanwhile();
    return this.wantedWorkers === 0 ? null : new ServeError('SERVE_INIT_FAILED');
  }

  whenOneFails(ended: Promise<unknown>): Promise<ServeError | null> {
    return this.whenFirstFailed(ended);
  }

  rejectCalls(): void {}
  close(): void {}
}

function manage(model: LatchedModel): {
  management: HttpManagement;
  registry: Models<LatchedModel & ManagedModel>;
} {
  const registry = new Models<LatchedModel & ManagedModel>(1000);
  registry.addFirst(model, false);
  const served = {
    registry,
    startUp: { expectTakeBack: () => {}, keep: () => {} },
    scale: (...given: Parameters<typeof registry.scale>) => registry.scale(...given),
  };
  const parts = { resolved: { options: { drainTimeout: 1000 } } };
  const management = new HttpManagement(
    served as unknown as ServedModels,
    parts as unknown as ManagementParts,
  );
  return { management, registry };
}

const outcomeOf = async (model: LatchedModel, management: HttpManagement): Promise<Outcome> =>
  management.start(model.spec, { min: 1, max: 1 }).settled;

test('a model whose first workers cannot start is unregistered again', async () => {
  const model = new LatchedModel();
  const { management, registry } = manage(model);
  assert.equal((await outcomeOf(model, management)).result, 'failed');
  assert.deepEqual([...registry.all()], []);
});

test('a model whose first workers cannot start stays if another request scaled it in the meantime', async () => {
  const model = new LatchedModel();
  const { management, registry } = manage(model);
  model.meanwhile = () => {
    model.meanwhile = () => {};
    management.scale(REF, { min: 2, max: 2 }, 0);
  };
  assert.equal((await outcomeOf(model, management)).result, 'failed');
  assert.deepEqual([...registry.all()], [model]);
});

test('a model that another request unregistered in the meantime is SERVE_MODEL_NOT_FOUND, not a failed start', async () => {
  const model = new LatchedModel();
  const { management } = manage(model);
  model.meanwhile = () => {
    model.meanwhile = () => {};
    void management.unregister(REF, 0);
  };
  const { result, error } = await outcomeOf(model, management);
  assert.deepEqual([result, error?.code], ['failed', 'SERVE_MODEL_NOT_FOUND']);
});

test('an unregistration without a time limit is unfinished at once', async () => {
  const { management } = manage(new LatchedModel());
  assert.equal((await management.unregister(REF, 0).settled).result, 'unfinished');
});
