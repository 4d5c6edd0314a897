/** Everything that can be called: which of it is shown first, and at which address. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { History } from '../../../supervisor/page/live/history.js';
import { chosenTarget, firstInput, targetsOf, urlOf } from '../../../supervisor/page/try/targets.js';
import { liveDescription, liveHistory, liveModel, liveRoute, liveSnapshot } from '../../helpers/live-data.js';

const history = new History(liveHistory());
history.add(
  liveSnapshot({
    models: [
      liveModel({ key: 1, isDefault: false }),
      liveModel({ key: 2, name: 'words' }),
      liveModel({ key: 3, name: 'loading', isDefault: false }),
      liveModel({ key: 4, name: 'leaving', isDefault: false, state: 'unloading' }),
    ],
    descriptions: [
      liveDescription({ key: 1 }),
      liveDescription({ key: 2, routes: [liveRoute({ path: '/a' }), liveRoute({ path: '/b' })] }),
      liveDescription({ key: 4 }),
    ],
  }),
);
const targets = targetsOf(history);

test('routes of apps that are loaded can be called, but not those of a model that leaves', () => {
  assert.deepEqual(
    targets.map(({ id }) => id),
    ['1 /', '2 /a', '2 /b'],
  );
});

for (const [title, id, expected] of [
  ['the default model, at its first route', '', '2 /a'],
  ['the chosen one', '2 /b', '2 /b'],
  ['another route of the same model, if the chosen one is gone', '1 /gone', '1 /'],
  ['the default model, if the chosen one is gone', '9 /', '2 /a'],
] as const)
  test(`shown is ${title}`, () => assert.equal(chosenTarget(targets, id)?.id, expected));

test('without a route nothing is shown', () => assert.equal(chosenTarget([], ''), null));

for (const [dialect, expected] of [
  ['banana', '7'],
  ['gateway', '{"modelInputs":7}'],
  ['cog', '{"input":7}'],
] as const)
  test(`the first input of ${dialect} is ${expected}`, () => {
    const described = liveDescription({ example: '7' });
    const livePath = { path: '/', dialect, isDeprecated: false };
    assert.deepEqual(JSON.parse(firstInput(described, liveRoute({}), livePath)), JSON.parse(expected));
  });

for (const [base, path, expected] of [
  ['http://localhost:8000/', '/', 'http://localhost:8000/'],
  ['http://localhost:8000/#watch', '/models/a%2Fb/', 'http://localhost:8000/models/a%2Fb/'],
  ['https://example.com/prefix/', '/predict', 'https://example.com/prefix/predict'],
  ['http://localhost:8000/', '//odd', 'http://localhost:8000//odd'],
] as const)
  test(`${path} seen from ${base} is ${expected}`, () => {
    const livePath = { path, dialect: 'banana', isDeprecated: false };
    assert.equal(urlOf(livePath, base), expected);
  });

for (const [dialect, expected] of [
  ['banana', '{"a":1}'],
  ['gateway', '{"modelInputs":{"a":1}}'],
  ['kserve-v1', '{"instances":[{"a":1}]}'],
] as const)
  test(`the example has the shape of the dialect ${dialect}`, () => {
    const route = liveRoute({ path: '/' });
    const description = liveDescription({ routes: [route], example: '{"a":1}' });
    const shown = firstInput(description, route, { path: '/x', dialect, isDeprecated: false });
    assert.deepEqual(JSON.parse(shown), JSON.parse(expected));
  });
