/** The route that a call with tensors means. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Route } from '../../../../../protocol/wire/messages.js';
import type { ChooseRoute, Target } from '../../../../../supervisor/http/dialects/dialect.js';
import { inferPlan } from '../../../../../supervisor/http/dialects/open-inference/open-inference.js';
import type { Model } from '../../../../../supervisor/models/model.js';

const MODEL = { spec: { name: 'm', version: '3' } } as unknown as Model;

function choose(routes: Readonly<Record<string, Route['kind']>>): string {
  const { route } = inferPlan(MODEL, false).target as Target;
  const all = Object.entries(routes).map(([path, kind]) => [path, { path, kind } as Route] as const);
  return (route as ChooseRoute)(new Map(all));
}

test('the worker reads and writes in the same format, and gets the name and version of the model', () => {
  const { format, answer, dialectParams } = inferPlan(MODEL, false);
  assert.deepEqual(
    [format, answer, dialectParams],
    ['open-inference', 'open-inference', { model: 'm', version: '3' }],
  );
});

for (const [routes, path] of [
  [{ '/': 'handler', '/other': 'handler' }, '/'],
  [{ '/only': 'handler' }, '/only'],
  [{ '/only': 'handler', '/': 'websocket' }, '/only'],
] as const)
  test(`of ${Object.keys(routes).join(' and ')}, ${path} is called`, () =>
    assert.equal(choose(routes), path));

for (const [why, routes, message] of [
  [
    'several routes without /',
    { '/one': 'handler', '/two': 'handler' },
    /^The model m has no route \/, and several others; call one of them: POST \/models\/m\/one, POST \/models\/m\/two\.$/,
  ],
  [
    'WebSockets only',
    { '/chat': 'websocket' },
    /no route that takes a call\. Open a WebSocket at \/models\/m\/chat\.$/,
  ],
  ['no route', {}, /^The model m has no route that takes a call\.$/],
  [
    'a background route',
    { '/': 'background' },
    /^The route \/ of the model m runs in the background: call it by POST \/models\/m\/, /,
  ],
] as const)
  test(`${why}: refused with what to use instead`, () => {
    assert.throws(() => choose(routes), { code: 'SERVE_BAD_REQUEST', message });
  });
