/** Tests of the registry of models, with fake models whose changes settle when the test lets them. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ServeError, shuttingDown } from '../../../protocol/errors.js';
import type { ManagedModel } from '../../../supervisor/models/model.js';
import { Registry } from '../../../supervisor/models/models.js';
import { countWithin, type WorkerBounds } from '../../../supervisor/models/bounds.js';
import { outcomeOf, type Outcome } from '../../../supervisor/models/outcome.js';
import { deferred, nextTurn } from '../../protocol/streams.js';

const LIMITS = { finishMs: 100, graceMs: 10 };

class FakeCrew {
  wanted = 0;
  gaveUp = 0;

  get running(): number {
    return this.wanted - this.gaveUp;
  }
}

class Fake {
  readonly spec: { readonly name: string; readonly version: string };
  readonly story: string[] = [];
  readonly crew = new FakeCrew();
  readonly sizing = { bounds: null };
  #settle: (outcome: Outcome) => void = () => {};
  #fail: (error: ServeError) => void = () => {};

  constructor(name: string, version = '1') {
    this.spec = { name, version };
  }

  /** It has all that the registry uses of a model. */
  get asModel(): ManagedModel {
    return this as unknown as ManagedModel;
  }

  scale(bounds: WorkerBounds): Promise<Outcome> {
    const count = countWithin(bounds, this.crew.running);
    this.crew.wanted = count;
    this.story.push(`scale ${count}`);
    return new Promise((resolve, reject) => ([this.#settle, this.#fail] = [resolve, reject]));
  }

  rejectCalls({ code, message }: ServeError): void {
    this.story.push(`reject calls: ${code} ${message}`);
  }

  close(): void {
    this.story.push('closed');
  }

  takeJobs(): void {
    this.story.push('take jobs');
  }

  /** The last change ends. */
  async settles(ready = this.crew.wanted, error: ServeError | null = null): Promise<void> {
    this.#settle(outcomeOf(this.crew.wanted, ready, error));
    await nextTurn();
  }

  async fails(error: ServeError): Promise<void> {
    this.#fail(error);
    await nextTurn();
  }
}

function modelsOf(...fakes: Fake[]): Registry {
  const models = new Registry(60_000);
  for (const fake of fakes) models.addFirst(fake.asModel, false);
  return models;
}

function described(models: Registry): string[] {
  return models.describe().map(({ model: { spec }, isDefault, isLeaving }) => {
    const marks = [...(isDefault ? ['default'] : []), ...(isLeaving ? ['leaving'] : [])];
    return [`${spec.name}/${spec.version}`, ...marks].join(' ');
  });
}

describe('a model is found', () => {
  test('by its name alone, which means its default version, and by name and version', () => {
    const [one, two] = [new Fake('digits'), new Fake('digits', '2')];
    const models = modelsOf(one, two, new Fake('other'));
    assert.equal(models.find({ name: 'digits' }), one);
    assert.equal(models.find({ name: 'digits', version: '2' }), two);
    models.setDefault({ name: 'digits', version: '2' });
    assert.equal(models.find({ name: 'digits' }), two);
    assert.deepEqual(described(models), ['digits/1', 'digits/2 default', 'other/1 default']);
  });

  test('or the error lists the existing names or versions', () => {
    const models = modelsOf(new Fake('digits'), new Fake('other'));
    assert.throws(() => models.find({ name: 'digit\n' }), {
      code: 'SERVE_MODEL_NOT_FOUND',
      message: 'There is no model "digit\\n"; this server has digits, other.',
    });
    assert.throws(() => models.find({ name: 'digits', version: '9' }), {
      code: 'SERVE_VERSION_NOT_FOUND',
      message: 'The model digits has no version "9"; it has: 1.',
    });
    assert.throws(() => modelsOf().find({ name: 'x' }), { message: /this server has none\.$/ });
  });

  test('and if not, the message has a bounded length, for any number of models and any name', () => {
    const models = modelsOf(...Array.from({ length: 1000 }, (_, i) => new Fake(`model-${i}`)));
    assert.throws(
      () => models.find({ name: 'x'.repeat(1e6) }),
      ({ message }: Error) => message.length < 1000 && message.endsWith('and 980 more.'),
    );
  });

  test('on / only if it was added as the one that answers there', async () => {
    const models = modelsOf(new Fake('other'));
    assert.equal(models.default, null);
    const app = new Fake('app');
    models.addFirst(app.asModel, true);
    assert.equal(models.default, app);
    const next = await models.register({ name: 'app', version: '2' }, () => new Fake('app', '2').asModel);
    models.setDefault({ name: 'app', version: '2' });
    assert.equal(models.default, next);
  });
});

describe('register', () => {
  test('adds a model without workers', async () => {
    const models = modelsOf();
    const model = await models.register({ name: 'digits', version: '1' }, () => new Fake('digits').asModel);
    assert.equal(model.crew.wanted, 0);
    assert.deepEqual(described(models), ['digits/1 default']);
  });

  test('refuses a name and version that is registered', async () => {
    const models = modelsOf(new Fake('digits'));
    const again = models.register({ name: 'digits', version: '1' }, () => new Fake('digits').asModel);
    await assert.rejects(again, { code: 'SERVE_MODEL_CONFLICT' });
  });

  test('waits for a model of the same name and version that is leaving; of two registrations that wait, one succeeds', async () => {
    const first = new Fake('digits');
    const models = modelsOf(first);
    models.unregister({ name: 'digits' }, LIMITS);
    let made = 0;
    const register = (): Promise<ManagedModel> =>
      models.register({ name: 'digits', version: '1' }, () => {
        made += 1;
        return new Fake('digits').asModel;
      });
    const both = Promise.allSettled([register(), register()]);
    await nextTurn();
    assert.equal(made, 0);
    await first.settles();
    const results = await both;
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected'],
    );
    assert.equal(made, 1);
    assert.deepEqual(described(models), ['digits/1 default']);
  });

  test('is refused if the model that is leaving takes too long', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] }); // the real timer is unref'd: it keeps no test alive
    const models = new Registry(1);
    models.addFirst(new Fake('digits').asModel, false);
    models.unregister({ name: 'digits' }, LIMITS);
    const late = models.register({ name: 'digits', version: '1' }, () => new Fake('digits').asModel);
    t.mock.timers.tick(1);
    await assert.rejects(late, { code: 'SERVE_MODEL_CONFLICT', message: /is being unregistered/ });
    assert.deepEqual(described(models), ['digits/1 leaving']);
  });

  test('is refused once the server drains, also if it has waited', async () => {
    const first = new Fake('digits');
    const models = modelsOf(first);
    models.unregister({ name: 'digits' }, LIMITS);
    const waiting = models.register({ name: 'digits', version: '1' }, () => new Fake('digits').asModel);
    const refused = assert.rejects(waiting, { code: 'SERVE_SHUTTING_DOWN' });
    models.close();
    await first.fails(shuttingDown());
    await refused;
  });
});

describe('scale', () => {
  const COUNTS: readonly (readonly [now: number, min: number, max: number, then: number])[] = [
    [0, 2, 2, 2],
    [1, 2, 4, 2],
    [3, 2, 4, 3],
    [5, 2, 4, 4],
    [5, 0, 0, 0],
    [0, 0, 3, 0],
  ];
  for (const [now, min, max, then] of COUNTS) {
    test(`of ${now} workers to at least ${min} and at most ${max} leaves ${then}`, () => {
      const model = new Fake('digits');
      model.crew.wanted = now;
      const { accepted } = modelsOf(model).scale({ name: 'digits' }, { min, max }, LIMITS);
      assert.deepEqual(accepted, { name: 'digits', version: '1' });
      assert.deepEqual(model.story, [`scale ${then}`]);
    });
  }

  test('does not count the workers of latched slots', () => {
    const model = new Fake('digits');
    [model.crew.wanted, model.crew.gaveUp] = [3, 2];
    const models = modelsOf(model);
    models.scale({ name: 'digits' }, { min: 0, max: 3 }, LIMITS);
    assert.deepEqual(model.story, ['scale 1']);
  });

  const crash = new ServeError('SERVE_CRASH_LOOP');
  const ENDS: readonly (readonly [ready: number, error: ServeError | null, result: string])[] = [
    [3, null, 'done'],
    [1, crash, 'partial'],
    [0, crash, 'failed'],
  ];
  for (const [ready, error, result] of ENDS) {
    test(`with ${ready} of 3 workers ends as ${result}`, async () => {
      const model = new Fake('digits');
      const { settled } = modelsOf(model).scale({ name: 'digits' }, { min: 3, max: 3 }, LIMITS);
      await model.settles(ready, error);
      assert.deepEqual(await settled, { result, wanted: 3, ready, error });
    });
  }

  test('that cannot be begun settles with the error and does not reject', async () => {
    const model = new Fake('digits');
    const { settled } = modelsOf(model).scale({ name: 'digits' }, { min: 1, max: 1 }, LIMITS);
    const error = new ServeError('SERVE_CONFIG', 'no GPU');
    await model.fails(error);
    assert.deepEqual(await settled, { result: 'failed', wanted: 1, ready: 0, error });
  });

  test('refuses numbers that are no counts, and a min above the max', () => {
    const models = modelsOf(new Fake('digits'));
    for (const [min, max] of [
      [-1, 1],
      [1, 0],
      [0.5, 1],
      [0, Infinity],
    ] as const)
      assert.throws(() => models.scale({ name: 'digits' }, { min, max }, LIMITS), { code: 'SERVE_CONFIG' });
  });
});

describe('replace', () => {
  test('runs one after the other; an error means failed even if all workers are ready', async () => {
    const model = new Fake('digits');
    model.crew.wanted = 1;
    const models = modelsOf(model);
    const story: string[] = [];
    const ends = [deferred<Outcome>(), deferred<Outcome>()];
    const settled = ends.map(({ promise }, i) => {
      const change = (): Promise<Outcome> => {
        story.push(`begins ${i}`);
        return promise;
      };
      return models.replace({ name: 'digits' }, change).settled;
    });
    assert.deepEqual(story, ['begins 0']);
    const error = new ServeError('SERVE_INIT_FAILED');
    ends[0]?.resolve(outcomeOf(1, 1, error));
    assert.equal((await settled[0])?.result, 'failed');
    await nextTurn();
    assert.deepEqual(story, ['begins 0', 'begins 1']);
    ends[1]?.resolve(outcomeOf(1, 1, null));
    assert.equal((await settled[1])?.result, 'done');
  });

  test('of a model that was unregistered before it began does nothing and fails', async () => {
    const model = new Fake('digits');
    const models = modelsOf(model);
    const first = deferred<Outcome>();
    models.replace({ name: 'digits' }, () => first.promise);
    const { settled } = models.replace({ name: 'digits' }, () => assert.fail('it is gone'));
    models.unregister({ name: 'digits' }, LIMITS);
    first.resolve(outcomeOf(0, 0, null));
    assert.equal((await settled).error?.code, 'SERVE_MODEL_NOT_FOUND');
  });
});

describe('unregister', () => {
  test('hides the model from callers at once, and describes it until its workers are gone', async () => {
    const model = new Fake('digits');
    const models = modelsOf(model);
    const { accepted, settled } = models.unregister({ name: 'digits' }, LIMITS);
    assert.deepEqual(accepted, { name: 'digits', version: '1' });
    assert.throws(() => models.find({ name: 'digits' }), { code: 'SERVE_MODEL_NOT_FOUND' });
    assert.deepEqual(described(models), ['digits/1 leaving']);
    await model.settles();
    assert.equal((await settled).result, 'done');
    assert.deepEqual([described(models), model.story], [[], ['scale 0', 'closed']]);
  });

  test('refuses the default version while there are others', () => {
    const models = modelsOf(new Fake('digits'), new Fake('digits', '2'));
    for (const ref of [{ name: 'digits' }, { name: 'digits', version: '1' }])
      assert.throws(() => models.unregister(ref, LIMITS), {
        code: 'SERVE_MODEL_CONFLICT',
        message: /^Version 1 is the default version of the model digits, which has other versions; make one/,
      });
    models.setDefault({ name: 'digits', version: '2' });
    models.unregister({ name: 'digits', version: '1' }, LIMITS);
    assert.deepEqual(described(models), ['digits/2 default', 'digits/1 leaving']);
  });

  test('of a model that ends with the server leaves it described', async () => {
    const model = new Fake('digits');
    const models = modelsOf(model);
    const { settled } = models.unregister({ name: 'digits' }, LIMITS);
    await model.fails(shuttingDown());
    assert.equal((await settled).error?.code, 'SERVE_SHUTTING_DOWN');
    assert.deepEqual(described(models), ['digits/1 leaving']);
  });
});

describe('unregisterAtOnce', () => {
  const [ref, both] = [{ name: 'digits' }, { name: 'digits', version: '1' }];

  test('refuses calls first with SERVE_NOT_READY while the model leaves, then with SERVE_MODEL_NOT_FOUND', async () => {
    const model = new Fake('digits');
    const models = modelsOf(model);
    const { settled } = models.unregisterAtOnce(ref, LIMITS);
    const message = 'The model digits is being unregistered.';
    assert.deepEqual(model.story, [`reject calls: SERVE_NOT_READY ${message}`, 'scale 0']);
    for (const meant of [ref, both])
      assert.throws(() => models.find(meant), { code: 'SERVE_NOT_READY', message, retryAfterS: 30 });
    assert.throws(() => models.find({ name: 'digits', version: '2' }), { code: 'SERVE_MODEL_NOT_FOUND' });
    assert.throws(() => models.scale(ref, { min: 1, max: 1 }, LIMITS), { code: 'SERVE_MODEL_NOT_FOUND' });
    assert.deepEqual(described(models), ['digits/1 leaving']);
    await model.settles();
    assert.equal((await settled).result, 'done');
    assert.throws(() => models.find(ref), { code: 'SERVE_MODEL_NOT_FOUND' });
  });

  test('of a model that is leaving already returns the same end again', async () => {
    const model = new Fake('digits');
    const models = modelsOf(model);
    const ends = [
      models.unregisterAtOnce(ref, LIMITS),
      models.unregisterAtOnce(ref, LIMITS),
      models.unregisterAtOnce(both, LIMITS),
    ];
    assert.equal(model.story.length, 2, 'it is asked once');
    await model.settles();
    for (const { accepted, settled } of ends) {
      assert.deepEqual(accepted, both);
      assert.equal((await settled).result, 'done');
    }
    assert.throws(() => models.unregisterAtOnce(ref, LIMITS), { code: 'SERVE_MODEL_NOT_FOUND' });
  });

  test('leaves the other versions of its name as they are', () => {
    const [one, two] = [new Fake('digits'), new Fake('digits', '2')];
    const models = modelsOf(one, two);
    models.unregisterAtOnce({ name: 'digits', version: '2' }, LIMITS);
    assert.equal(models.find(ref), one);
    assert.throws(() => models.find({ name: 'digits', version: '2' }), { code: 'SERVE_NOT_READY' });
    assert.throws(() => models.find({ name: 'digits', version: '3' }), { code: 'SERVE_VERSION_NOT_FOUND' });
  });
});
