import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InitContext } from '../../../worker/api/types.js';
import { fromBananaApp } from '../../../worker/adapters/banana-app.js';
import type { CallInfo } from '../../../worker/loaded-app.js';

const INIT = {} as InitContext;
const CTX = {} as CallInfo;

test('a Banana app answers on one route with its inference, input and context handed over', () => {
  const app = fromBananaApp({ inference: (input: unknown, ctx: unknown) => [input, ctx] });
  assert.deepEqual(app?.routes, [{ path: '/', kind: 'handler', input: 'any', webhook: '', maxBatch: 1 }]);
  assert.deepEqual(app?.handle('/', 5, CTX), [5, CTX]);
  assert.equal(app?.example, null);
  assert.deepEqual(app?.modelOptions, {});
  assert.equal(app?.init(INIT), undefined);
  assert.equal(app?.shutdown(), undefined);
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
  assert.deepEqual(app?.init(INIT), ['m', INIT]);
  assert.equal(app?.handle('/', null, CTX), 'm');
  assert.equal(app?.shutdown(), 'm');
  assert.deepEqual(app?.example, { route: '/', input: undefined }, 'exported counts, whatever it is');
  assert.deepEqual(app?.modelOptions, { runTimeout: '5s' });
});

for (const exports of [{}, { inference: 5 }, { predict: () => 1 }]) {
  test(`${JSON.stringify(Object.keys(exports))} is not a Banana app`, () =>
    assert.equal(fromBananaApp(exports), null));
}

for (const [name, value, message] of [
  ['init', 5, 'export `init` is a number; make it a function or remove it'],
  ['init', null, 'export `init` is an object; make it a function or remove it'],
  ['shutdown', {}, 'export `shutdown` is an object; make it a function or remove it'],
  ['config', 'x', 'export `config` must be an object, such as { runTimeout: "30s" }'],
  ['config', [1], 'export `config` must be an object, such as { runTimeout: "30s" }'],
] as const) {
  test(`an app with ${name} = ${JSON.stringify(value)} is refused by name`, () => {
    const exports = { inference: () => 1, [name]: value };
    assert.throws(() => fromBananaApp(exports), new TypeError(message));
  });
}
