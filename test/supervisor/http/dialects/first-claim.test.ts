/** The dialect that gets a request; an app that is not loaded yet keeps its own routes. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ServeError } from '../../../../protocol/errors.js';
import { routeCall } from '../../../../supervisor/http/call/find-route.js';
import type {
  CallPlan,
  DefaultDialect,
  Dialect,
  Operation,
  Target,
} from '../../../../supervisor/http/dialects/dialect.js';
import { claim } from '../../../../supervisor/http/dialects/index.js';
import type { RequestContext } from '../../../../supervisor/http/request/request-context.js';
import type { Routes } from '../../../../supervisor/models/generations.js';
import type { Model } from '../../../../supervisor/models/model.js';

const MODEL = { spec: { name: 'm' } } as unknown as Model;
const OTHER = { spec: { name: 'other' } } as unknown as Model;
const PATH = '/v9/x';

const planOf = (format: string, target: Target): CallPlan => ({ target, format });
const operation = (act: Operation['act'], more: Partial<Operation> = {}): Operation => ({
  auth: 'call',
  counts: true,
  methods: 'POST',
  act,
  ...more,
});

function dialect(name: string, claim: () => Operation | null): Dialect {
  return { name, claim } as unknown as Dialect;
}

const house = dialect('house', () =>
  operation(planOf('auto', { model: MODEL, route: PATH }), { isGuess: true }),
);
const refusal = new ServeError('SERVE_NOT_FOUND', 'nothing here');
const routes = (...paths: string[]): Routes =>
  new Map(paths.map((path) => [path, { path, input: 'any' }])) as unknown as Routes;

const UNCLAIMED = operation({ refuse: new ServeError('SERVE_NOT_FOUND', 'unclaimed') });
const NOBODYS = { ...dialect('default', () => null), unclaimed: () => UNCLAIMED } as DefaultDialect;

function claimed(...dialects: readonly Dialect[]): { context: RequestContext; act: Operation['act'] } {
  const request = { headers: {} };
  const context = { backend: { models: null }, dialect: null, request } as unknown as RequestContext;
  const { act } = claim(context, { inOrder: dialects, default: NOBODYS }, true);
  return { context, act };
}

/** The format and the dialect that a call gets once the app has loaded with these routes. */
function answered(second: Dialect, loaded: Routes, target: Target = { model: MODEL, route: '/' }): string[] {
  const { context, act } = claimed(house, second);
  const { plan } = routeCall(context, act as CallPlan, target, loaded, null);
  return [plan.format, context.dialect.name];
}

describe('a request that another dialect claims while the app is loading', () => {
  const caller = dialect('caller', () => operation(planOf('own', { model: MODEL, route: '/' })));

  test('is a call of the app if that turns out to have such a route', () => {
    assert.deepEqual(answered(caller, routes('/', PATH)), ['auto', 'house']);
  });

  test('is a call of the dialect if the app has no such route', () => {
    assert.deepEqual(answered(caller, routes('/')), ['own', 'caller']);
  });

  test('is a call of the dialect if it is for another model', () => {
    assert.deepEqual(answered(caller, routes('/', PATH), { model: OTHER, route: '/' }), ['own', 'caller']);
  });

  test('is refused in the words of the dialect that refuses it, unless the app has such a route', () => {
    const refuser = dialect('refuser', () => operation({ refuse: refusal }, { counts: false }));
    const { context, act } = claimed(house, refuser);
    const { target, noRoute } = act as CallPlan & { readonly target: Target };
    assert.deepEqual(
      [target, noRoute, context.dialect.name],
      [{ model: MODEL, route: PATH }, refusal, 'refuser'],
    );
    assert.deepEqual(answered(refuser, routes(PATH), target), ['auto', 'house']);
  });

  test('is answered at once by a page, and where another key is needed', () => {
    const page = operation({ write: () => {} });
    const manager = operation({ refuse: refusal }, { auth: 'management' });
    for (const other of [page, manager])
      assert.equal(
        claimed(
          house,
          dialect('page', () => other),
        ).act,
        other.act,
      );
  });
});

test('the first guess counts if no dialect claims the request', () => {
  const second = dialect('second', () => operation({ refuse: refusal }, { isGuess: true }));
  const { context, act } = claimed(second, house);
  assert.deepEqual([context.dialect.name, act], ['second', { refuse: refusal }]);
  assert.equal(claimed(dialect('none', () => null)).act, UNCLAIMED.act);
});
