import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InitContext, CallInfo } from '../../../worker/api/types.js';
import { fromBananaApp } from '../../../worker/adapters/banana-app.js';
import type { Surroundings } from '../../../worker/adapters/loaded-app.js';

const INIT = {} as InitContext;
const CTX = {} as CallInfo;

test('a Banana app answers on one route with its inference, input and context handed over', () => {
  const app = fromBananaApp({ inference: (input: unknown, ctx: unknown) => [input, ctx] });
  assert.deepEqual(app?.description.routes, [
    { path: '/', kind: 'handler', input: 'any', webhook: '', maxBatch: 1, attempts: 1 },
  ]);
  assert.deepEqual(app?.handle('/', 5, CTX), [5, CTX]);
  assert.equal(app?.description.example, null);
  assert.deepEqual(app?.description.modelOptions, {});
  assert.equal(app?.init(INIT, {} as Surroundings), undefined);
  assert.equal(app?.shutdown, undefined);
});

test('init, shutdown, example and config are taken over, `this` of a default export included', () => {
  const exports = {
    name: 'm',
    init(ctx: unknown) {
      return [this.name, ctx];
    },
    inference() {
      return this.name;
    },
    shutdown() {
      return this.name;
    },
    example: undefined,
    config: { runTimeout: '5s' },
  };
  const app = fromBananaApp(exports);
  assert.deepEqual(app?.init(INIT, {} as Surroundings), ['m', INIT]);
  assert.equal(app?.handle('/', null, CTX), 'm');
  assert.equal(app?.shutdown?.(), 'm');
  assert.deepEqual(
    app?.description.example,
    { route: '/', input: undefined },
    'exported counts, whatever it is',
  );
  assert.deepEqual(app?.description.modelOptions, { runTimeout: '5s' });
});

for (const exports of [{}, { inference: 5 }, { predict: () => 1 }]) {
  test(`${JSON.stringify(Object.keys(exports))} is not a Banana app`, () =>
    assert.equal(fromBananaApp(exports), null));
}

const twice = (inputs: readonly number[], ctxs: unknown): unknown[] =>
  inputs.map((input) => [2 * input, ctxs]);

test('an app with both functions gives a single call to inference and a batch to inferenceBatch', () => {
  const exports = {
    name: 'm',
    inference: (input: unknown) => input,
    inferenceBatch(inputs: readonly number[], ctxs: unknown) {
      return [this.name, ...twice(inputs, ctxs)];
    },
  };
  const app = fromBananaApp(exports);
  assert.equal(app?.description.routes[0]?.maxBatch, 0xffff);
  assert.equal(app?.handle('/', 5, CTX), 5);
  assert.deepEqual(app?.handleBatch?.('/', [1, 2], [CTX, CTX]), ['m', [2, [CTX, CTX]], [4, [CTX, CTX]]]);
});

test('an app with inferenceBatch alone gets a single call as a batch of one, its example included', async () => {
  const app = fromBananaApp({ inferenceBatch: twice, example: 7 });
  assert.deepEqual(app?.handle('/', 5, CTX), [10, [CTX]]);
  assert.deepEqual(app?.description.example, { route: '/', input: 7 });
  const later = fromBananaApp({ inferenceBatch: async () => Promise.resolve(['only']) });
  assert.equal(await later?.handle('/', 5, CTX), 'only');
  const wrong = fromBananaApp({ inferenceBatch: () => [] });
  assert.throws(() => wrong?.handle('/', 5, CTX), /returned 0 entries for 1 call;/);
});

test('repeatable is set by the app, and is not an option of the server', () => {
  assert.equal(fromBananaApp({ inference: () => 1 })?.repeatable, false);
  const app = fromBananaApp({ inference: () => 1, config: { repeatable: true, runTimeout: '5s' } });
  assert.deepEqual([app?.repeatable, app?.description.modelOptions], [true, { runTimeout: '5s' }]);
});

test('concurrency is set by the app, and is no option of the server', () => {
  assert.equal(fromBananaApp({ inference: () => 1 })?.description.concurrency, 1);
  const app = fromBananaApp({ inference: () => 1, config: { concurrency: 128, runTimeout: '5s' } });
  assert.deepEqual(
    [app?.description.concurrency, app?.description.modelOptions],
    [128, { runTimeout: '5s' }],
  );
});

for (const [name, value, message] of [
  ['config', { concurrency: '8' }, 'export `config`: concurrency must be a whole number from 1 to 128'],
  ['inferenceBatch', 5, 'export `inferenceBatch` is a number; make it a function or remove it'],
  ['config', { repeatable: 'yes' }, 'export `config`: repeatable must be true or false'],
  ['init', 5, 'export `init` is a number; make it a function or remove it'],
  ['init', null, 'export `init` is null; make it a function or remove it'],
  ['shutdown', {}, 'export `shutdown` is an object; make it a function or remove it'],
  ['config', 'x', 'export `config` must be an object, such as { runTimeout: "30s" }'],
  ['config', [1], 'export `config` must be an object, such as { runTimeout: "30s" }'],
] as const) {
  test(`an app with ${name} = ${JSON.stringify(value)} is refused by name`, () => {
    const exports = { inference: () => 1, [name]: value };
    assert.throws(() => fromBananaApp(exports), new TypeError(message));
  });
}

test('an app with inferenceBatch is refused by name if its inference is not a function', () => {
  const message = 'export `inference` is a number; make it a function or remove it';
  assert.throws(() => fromBananaApp({ inferenceBatch: twice, inference: 5 }), new TypeError(message));
});
