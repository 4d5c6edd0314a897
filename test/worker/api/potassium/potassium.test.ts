import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  InvalidEndpointTypeException,
  RouteAlreadyInUseException,
  DEFINITION,
} from '../../../../worker/api/potassium/definition.js';
import { setImportingWorker } from '../../../../worker/api/serving.js';
import { Potassium } from '../../../../worker/api/potassium/potassium.js';
import { Response } from '../../../../worker/api/potassium/response.js';

const answer = (): Response => new Response();
const pathsOf = (app: Potassium): string[] => [...app[DEFINITION].endpoints.keys()];

test('handler and background take a route and a function, or the function later, and give it back', () => {
  const app = new Potassium('x');
  assert.equal(app.handler('/a', answer), answer);
  assert.equal(app.handler('/b')(answer), answer);
  assert.equal(app.background('/c', answer), answer);
  assert.equal(app.background('/d')(answer), answer);
  assert.equal(app.asyncHandler('/e')(answer), answer);
  const endpoints = [...app[DEFINITION].endpoints].map(([path, { kind, run }]) => [
    path,
    kind,
    run === answer,
  ]);
  assert.deepEqual(endpoints, [
    ['/a', 'handler', true],
    ['/b', 'handler', true],
    ['/c', 'background', true],
    ['/d', 'background', true],
    ['/e', 'background', true],
  ]);
});

for (const [given, path] of [
  [undefined, '/'],
  ['', '/'],
  ['/', '/'],
  ['foo', '/foo'],
  ['/foo', '/foo'],
  ['/foo/', '/foo/'],
  ['foo/Bar', '/foo/Bar'],
  ['/statuses', '/statuses'],
  ['/_kitten', '/_kitten'],
] as const) {
  test(`the route ${JSON.stringify(given)} is ${path}`, () => {
    const app = new Potassium('x');
    app.handler(given)(answer);
    assert.deepEqual(pathsOf(app), [path]);
  });
}

test('a route is taken once, by handlers and background functions alike, from its declaration on', () => {
  const app = new Potassium('x');
  app.handler('/a', answer);
  const inUse = (error: Error): boolean => {
    assert.ok(error instanceof RouteAlreadyInUseException);
    assert.equal(error.name, 'RouteAlreadyInUseException');
    assert.match(error.message, /^Route already in use: \/[\w/]*$/);
    return true;
  };
  assert.throws(() => app.handler('/a', answer), inUse);
  assert.throws(() => app.handler('a'), inUse);
  assert.throws(() => app.background('a', answer), inUse);
  app.background('/b');
  assert.throws(() => app.handler('/b', answer), inUse);
  app.handler('/A', answer);
  app.handler('/a/', answer);
  assert.deepEqual(pathsOf(app), ['/a', '/b', '/A', '/a/']);
});

for (const route of [
  '/_k/status',
  '/_k/warmup',
  '/_k/jobs/5',
  '_k/mine',
  '/_k',
  '/__status__',
  '/healthcheck',
  '/livez',
  '/readyz',
  '/status',
]) {
  test(`${route} is the server's own and cannot be taken`, () => {
    const app = new Potassium('x');
    assert.throws(() => app.handler(route, answer), RouteAlreadyInUseException);
    assert.throws(() => app.background(route), /Route already in use: \/.* is the server's own/);
    assert.deepEqual(pathsOf(app), []);
  });
}

test('an invalid route or function is refused by name', () => {
  const app = new Potassium('x');
  for (const route of [5, null, {}]) {
    assert.throws(() => app.handler(route as unknown as string, answer), InvalidEndpointTypeException);
    assert.throws(
      () => app.background(route as unknown as string, answer),
      new InvalidEndpointTypeException(),
    );
  }
  assert.throws(
    () => app.handler('/a')(5 as never),
    new TypeError("handler('/a') needs a function, not number"),
  );
  assert.throws(() => app.init(5 as never), new TypeError('init needs a function, not number'));
});

test('a route that was declared without a function fails with that error when it is called', () => {
  const app = new Potassium('x');
  app.handler('/a');
  const run = app[DEFINITION].endpoints.get('/a')?.run as () => unknown;
  assert.throws(run, /the route \/a was declared without a function/);
});

test('a batch handler is given with its options before it, behind it, or later; a background one is refused', () => {
  const app = new Potassium('x');
  const answers = (): Response[] => [];
  assert.equal(app.handler('/a', { batch: true }, answers), answers);
  assert.equal(app.handler('/b', { batch: true })(answers), answers);
  assert.equal(app.handler('/c', answers as never, { batch: true } as never), answers);
  for (const { batch, run } of app[DEFINITION].endpoints.values()) {
    assert.ok(batch);
    assert.equal(run, answers);
  }
  const own = { batch: true } as object;
  assert.throws(
    () => app.background('/d', () => {}, own),
    /background\('\/d'\): only a handler can take calls in a batch/,
  );
  assert.throws(
    () => app.handler('/e', { batch: 5 } as never),
    /handler\('\/e'\): batch must be true or false/,
  );
});

test('a bare handler is the one at /: it takes any body, and a later one takes its place', () => {
  const app = new Potassium('x');
  const first = (): number => 1;
  const second = (): number => 2;
  assert.equal(app.handler(first), first);
  assert.equal(app.handler(second), second);
  const endpoint = app[DEFINITION].endpoints.get('/');
  assert.deepEqual([endpoint?.run, endpoint?.legacy, endpoint?.input], [second, true, 'any']);
});

test('a bare handler does not take the place of a route handler at /', () => {
  const app = new Potassium('x');
  app.handler('/', answer);
  assert.throws(() => app.handler(() => 1), RouteAlreadyInUseException);
});

test('a route takes JSON unless it is declared raw, in both ways of writing it', () => {
  const app = new Potassium('x');
  app.handler('/json', answer);
  app.handler('/raw', answer, { raw: true });
  app.handler('/raw-later', { raw: true })(answer);
  app.background('/raw-background', answer, { raw: true });
  const inputs = [...app[DEFINITION].endpoints.values()].map(({ input }) => input);
  assert.deepEqual(inputs, ['json', 'any', 'any', 'any']);
});

test('init gives the app back, and a later one takes the place of an earlier', () => {
  const app = new Potassium('x');
  const [first, second] = [() => ({}), () => ({})];
  assert.equal(app.init(first), app);
  assert.equal(app.init(second), app);
  assert.equal(app[DEFINITION].init, second);
});

test('setCache, getCache, setContext and getContext are of one and the same object', () => {
  const app = new Potassium<object>('x');
  assert.deepEqual(app.getCache(), {});
  assert.equal(app[DEFINITION].hasContext, false);
  const cache = { a: 1 };
  app.setCache(cache);
  assert.equal(app.getCache(), cache);
  assert.equal(app.getContext(), cache);
  assert.equal(app[DEFINITION].hasContext, true);
  const context = { b: 2 };
  app.setContext(context);
  assert.equal(app.getCache(), context);
  for (const value of [null, 5, 'text', undefined])
    assert.throws(
      () => app.setCache(value as unknown as object),
      new TypeError('setCache() needs an object'),
    );
});

test('optimize registers models in its mode and does nothing otherwise', () => {
  const serving = new Potassium('x');
  serving.optimize({});
  assert.deepEqual(serving.toOptimize, []);
  const optimizing = new Potassium('x', { mode: 'optimize' });
  const models = [{ a: 1 }, { b: 2 }];
  for (const model of models) optimizing.optimize(model);
  assert.deepEqual(optimizing.toOptimize, models);
});

test('resultWebhook takes an address as text or in an object, the last wins, and wraps nothing', () => {
  const app = new Potassium('x');
  assert.equal(app.resultWebhook('http://one.test/x')(answer), answer);
  app.resultWebhook({ url: 'https://two.test/y' });
  assert.equal(app[DEFINITION].resultWebhook, 'https://two.test/y');
});

for (const url of ['', 'two.test', '/path', 'ftp://two.test', 'file:///etc/passwd', 5, null]) {
  test(`${JSON.stringify(url)} is refused as the URL of a webhook`, () => {
    const app = new Potassium('x');
    assert.throws(() => app.resultWebhook({ url: url as string }), /the URL of a webhook must/);
    const options = { resultWebhook: url as string };
    assert.throws(() => app.background('/a', answer, options), /the URL of a webhook must/);
    assert.throws(() => app.asyncHandler('/a', options), /the URL of a webhook must/);
    assert.deepEqual(pathsOf(app), []);
  });
}

test('in a worker serve() and testClient() hand the app over, and do not come back', async () => {
  const served: unknown[] = [];
  let awaited = 0;
  setImportingWorker({
    onMade: () => {},
    onServe: (app) => served.push(app),
    onAwaited: () => (awaited += 1),
  });
  const app = new Potassium('x');
  const end = app.serve();
  void app.testClient();
  assert.deepEqual(served, [app, app]);
  assert.equal(awaited, 0, 'code that does not await it continues');
  assert.equal(await Promise.race([end, Promise.resolve('still waiting')]), 'still waiting');
  assert.equal(awaited, 1);
});
