import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromPotassiumApp } from '../../../worker/adapters/potassium-app.js';
import { Potassium, type PotassiumOptions } from '../../../worker/api/potassium/potassium.js';
import { Request } from '../../../worker/api/potassium/request.js';
import { Response, type ResponseBody } from '../../../worker/api/potassium/response.js';
import type { InitContext, CallInfo } from '../../../worker/api/types.js';
import type { LoadedApp, Surroundings } from '../../../worker/adapters/loaded-app.js';
import { Reply } from '../../../worker/formats/reply.js';
import { isPotassiumResponse, replyOfResponse } from '../../../worker/reply/reply-of.js';
import { serveError } from '../refusals.js';

const CTX = { requestId: 'req-1', headers: {}, body: Buffer.from('"in"') } as unknown as CallInfo;
const OPTIONS: PotassiumOptions = {};
const SURROUNDINGS = {} as Surroundings;

function initContext(index = 0): InitContext {
  return { worker: { index, gpu: null, threads: 1 } } as unknown as InitContext;
}

function load(app: Potassium): LoadedApp {
  return fromPotassiumApp({ default: 1, app }) as LoadedApp;
}

function initOf(app: Potassium): Promise<unknown> {
  return load(app).init(initContext(), SURROUNDINGS) as Promise<unknown>;
}

/** The answer of an app with this one handler. */
function answerOf(handler: (context: unknown, request: Request) => unknown): unknown {
  const app = new Potassium('x', OPTIONS);
  app.handler('/', handler as () => Response);
  return load(app).handle('/', 'in', CTX);
}

function replyOf(response: Response): Reply {
  return asReply(answerOf(() => response));
}

/** An answer as a call sends it. */
function asReply(answer: unknown): Reply {
  const reply = isPotassiumResponse(answer) ? replyOfResponse(answer) : answer;
  assert.ok(reply instanceof Reply);
  return reply;
}

test('an app is found as the default export itself or under the name app', () => {
  const app = new Potassium('x');
  app.handler(() => 1);
  assert.ok(fromPotassiumApp({ app }) !== null);
  assert.ok(fromPotassiumApp(app as unknown as Record<string, unknown>) !== null);
  for (const exports of [{}, { app: 5 }, { app: null }, { app: {} }, { other: app }])
    assert.equal(fromPotassiumApp(exports), null);
});

test('several exported apps are refused, unless one is the default', () => {
  const [app, other] = [new Potassium('one'), new Potassium('two')];
  other.handler('/two', () => new Response());
  assert.throws(() => fromPotassiumApp({ app, other, last: new Potassium('three') }), {
    message: /^`app`, `other` and `last` are Potassium apps, but a file serves only one: /,
  });
  assert.ok(fromPotassiumApp({ app, same: app }) !== null);
  assert.deepEqual(
    fromPotassiumApp({ app, default: other })?.description.routes.map(({ path }) => path),
    ['/two'],
  );
});

test('routes list their kind, their input and their webhook', () => {
  const app = new Potassium('x');
  app.handler('/a', () => new Response());
  app.handler('/b', () => new Response(), { raw: true });
  app.background('/c', () => {});
  app.background('/d', () => {}, { resultWebhook: 'http://own.test/' });
  const tell = (): unknown[] =>
    load(app).description.routes.map(({ path, kind, input, webhook }) =>
      [path, kind, input, webhook].join(' '),
    );
  assert.deepEqual(tell(), [
    '/a handler json ',
    '/b handler any ',
    '/c background json ',
    '/d background json http://own.test/',
  ]);
  app.resultWebhook('http://all.test/');
  assert.deepEqual(tell(), [
    '/a handler json http://all.test/',
    '/b handler any http://all.test/',
    '/c background json ',
    '/d background json http://own.test/',
  ]);
});

// Batches

/** An app whose one handler takes batches. */
function batchApp(
  fn: (context: object, requests: readonly Request[]) => unknown,
  config: object = {},
): LoadedApp {
  const app = new Potassium('x');
  app.handler('/b', { batch: true }, fn as () => Response[]);
  return fromPotassiumApp({ app, config }) as LoadedApp;
}

const bodyOf = (reply: unknown): unknown => asReply(reply).body;

test('a handler with batch: true takes many calls, gets one request for each and answers with one Response for each', async () => {
  const echo = (_context: object, requests: readonly Request[]): Response[] =>
    requests.map(({ json, id }) => new Response({ json: [json, id] }));
  for (const app of [batchApp(echo), batchApp((...given) => Promise.resolve(echo(...given)))]) {
    assert.deepEqual(
      app.description.routes.map(({ path, kind, input, maxBatch }) => [path, kind, input, maxBatch]),
      [['/b', 'handler', 'json', 0xffff]],
    );
    const other = { ...CTX, requestId: 'req-2' };
    const replies = (await app.handleBatch?.('/b', ['a', 'b'], [CTX, other])) as unknown[];
    assert.deepEqual(replies.map(bodyOf), [
      { kind: 'json', value: ['a', 'req-1'] },
      { kind: 'json', value: ['b', 'req-2'] },
    ]);
    assert.deepEqual(bodyOf(await app.handle('/b', 'alone', CTX)), {
      kind: 'json',
      value: ['alone', 'req-1'],
    });
  }
});

test('an entry of a batch handler that is an Error, a promise or not a Response affects only its own call', async () => {
  const mine = new Error('mine');
  const entries = [
    mine,
    Promise.resolve(new Response({ json: 1 })),
    5,
    new Response({ headers: { a: 'b\nc' } }),
  ];
  const app = batchApp(() => entries);
  const replies = app.handleBatch?.('/b', [1, 2, 3, 4], [CTX, CTX, CTX, CTX]) as unknown[];
  assert.equal(replies[0], mine);
  assert.deepEqual(bodyOf(await replies[1]), { kind: 'json', value: 1 });
  assert.match(String(replies[2]), /TypeError: Potassium Response object not returned/);
  assert.throws(() => asReply(replies[3]), /header "a" has a line break/);
});

test('a batch handler that throws a Response, or returns too few, does so to a single call as well', async () => {
  const denied = batchApp(() => {
    throw new Response({ status: 403 }) as unknown as Error;
  });
  assert.throws(
    () => denied.handle('/b', 1, CTX),
    (thrown) => asReply(thrown).head.status === 403,
  );
  const few = batchApp(() => Promise.resolve([]));
  await assert.rejects(few.handle('/b', 1, CTX) as Promise<unknown>, /0 entries for 1 call;/);
  assert.deepEqual(await few.handleBatch?.('/b', [1, 2], [CTX, CTX]), []);
  assert.equal(batchApp(() => 'ab').handleBatch?.('/b', [1, 2], [CTX, CTX]), 'ab', 'its runner refuses it');
});

test('concurrency is read from the config beside the app, and is no option of the server', () => {
  const { description } = batchApp(() => [], { concurrency: 8 });
  assert.deepEqual([description.concurrency, description.modelOptions], [8, {}]);
});

test('repeatable is read from the config beside the app, and is not an option of the server', () => {
  const app = batchApp(() => [], { repeatable: true, runTimeout: '5s' });
  assert.deepEqual([app.repeatable, app.description.modelOptions], [true, { runTimeout: '5s' }]);
  assert.equal(batchApp(() => []).repeatable, false);
});

// init

for (const [what, init, context] of [
  ['returns an object', () => ({ a: 1 }), { a: 1 }],
  ['resolves with an object', () => Promise.resolve({ a: 2 }), { a: 2 }],
] as const) {
  test(`an init that ${what} gives the context`, async () => {
    const app = new Potassium('x').init(init as () => object);
    await load(app).init(initContext(), SURROUNDINGS);
    assert.deepEqual(app.getContext(), context);
  });
}

test('init gets the number of its worker', async () => {
  const app = new Potassium('x').init((workerNum) => ({ workerNum }));
  await load(app).init(initContext(3), SURROUNDINGS);
  assert.deepEqual(app.getContext(), { workerNum: 3 });
});

test('an app without init has an empty context', async () => {
  const app = new Potassium('x');
  await load(app).init(initContext(), SURROUNDINGS);
  assert.deepEqual(app.getContext(), {});
});

test('an init that called setCache need not return anything', async () => {
  const app = new Potassium<object>('x');
  app.init(() => app.setCache({ a: 1 }));
  await load(app).init(initContext(), SURROUNDINGS);
  assert.deepEqual(app.getContext(), { a: 1 });
});

test('values that init returns win over those that it passed to setCache', async () => {
  const app = new Potassium<object>('x');
  app.init(() => {
    app.setCache({ a: 1 });
    return { b: 2 };
  });
  await load(app).init(initContext(), SURROUNDINGS);
  assert.deepEqual(app.getContext(), { b: 2 });
});

for (const returned of [undefined, null, 5, 'text', true, [], [1]]) {
  test(`an init that returns ${JSON.stringify(returned)} is refused`, async () => {
    const app = new Potassium('x');
    app.init((() => returned) as unknown as () => object);
    await assert.rejects(initOf(app), /init\(\) must return an object/);
  });
}

test('an init that called setCache may still not return anything but an object', async () => {
  const app = new Potassium<object>('x');
  app.init((() => {
    app.setCache({});
    return 5;
  }) as unknown as () => object);
  await assert.rejects(initOf(app), /init\(\) must return an object/);
});

// handlers

test('a handler gets the context, live, and the request', async () => {
  const app = new Potassium('x').init(() => ({ calls: 0 }));
  app.handler('/', (context, request) => {
    context.calls += 1;
    return new Response({ json: [context.calls, request.json, request.id, request.body.length] });
  });
  const loaded = load(app);
  await loaded.init(initContext(), SURROUNDINGS);
  await loaded.handle('/', 'in', CTX);
  const reply = asReply(loaded.handle('/', 'in', CTX));
  assert.deepEqual(reply.body, { kind: 'json', value: [2, 'in', 'req-1', 4] });
});

test('a context that a handler puts in place of the old is the one of the next call', async () => {
  const app = new Potassium<Record<string, number>>('x');
  app.handler('/', (context) => {
    app.setCache({ calls: (context['calls'] ?? 0) + 1 });
    return new Response({ json: context });
  });
  const loaded = load(app);
  await loaded.init(initContext(), SURROUNDINGS);
  await loaded.handle('/', null, CTX);
  const reply = asReply(loaded.handle('/', null, CTX));
  assert.deepEqual(reply.body, { kind: 'json', value: { calls: 1 } });
});

for (const [what, json] of [
  ['an object', { a: 1 }],
  ['a list', [1, 2]],
  ['null', null],
  ['a text', 'x'],
  ['false', false],
] as const) {
  test(`${what} as json is JSON, also if its headers name another content type`, () => {
    const { head, body } = replyOf(new Response({ json, headers: { 'content-type': 'text/plain' } }));
    assert.deepEqual(head, { status: 200, contentType: 'application/json', headers: '', phrase: '' });
    assert.deepEqual(body, { kind: 'json', value: json });
  });
}

for (const [what, body, contentType, bytes] of [
  ['nothing', undefined, '', ''],
  ['text', 'é', 'text/plain; charset=utf-8', 'é'],
  ['an empty text', '', 'text/plain; charset=utf-8', ''],
  ['a Buffer', Buffer.from('b'), 'application/octet-stream', 'b'],
  ['a Uint8Array', new Uint8Array([0x75]), 'application/octet-stream', 'u'],
  ['an ArrayBuffer', new Uint8Array([0x61]).buffer, 'application/octet-stream', 'a'],
] as const) {
  test(`${what} as body is sent as it is`, () => {
    const { head, body: sent } = replyOf(
      new Response({ status: 201, ...(body === undefined ? {} : { body }) }),
    );
    assert.deepEqual(head, { status: 201, contentType, headers: '', phrase: '' });
    assert.equal(sent.kind === 'bytes' && Buffer.from(sent.bytes).toString(), bytes);
  });
}

for (const [what, body] of [
  ['a list', ['a', 'b']],
  ['a Set', new Set(['a', 'b'])],
  [
    'a generator',
    (function* () {
      yield* ['a', 'b'];
    })(),
  ],
  [
    'an async generator',
    (async function* () {
      await Promise.resolve();
      yield* ['a', 'b'];
    })(),
  ],
  ['a web stream', new Blob(['a', 'b']).stream()],
] as const) {
  test(`${what} as body is a stream`, async () => {
    const { head, body: sent } = replyOf(new Response({ body: body as ResponseBody }));
    assert.equal(head.contentType, 'application/octet-stream');
    assert.ok(sent.kind === 'stream');
    const items: string[] = [];
    for (;;) {
      const step = await sent.iterator.next();
      if (step.done === true) break;
      items.push(Buffer.from(step.value as string).toString());
    }
    assert.equal(items.join(''), 'ab');
  });
}

test('headers are kept, repeated ones too; a content type is taken in any case', () => {
  const headers = { 'X-One': '1', 'X-Two': ['2', '3'], 'CONTENT-TYPE': 'image/png' };
  const { head } = replyOf(new Response({ body: Buffer.from(''), headers }));
  assert.deepEqual(head, {
    status: 200,
    contentType: 'image/png',
    headers: 'X-One\n1\nX-Two\n2\nX-Two\n3',
    phrase: '',
  });
});

test('a promise of a Response is waited for', async () => {
  const reply = await answerOf(() => Promise.resolve(new Response({ json: 5 })));
  assert.deepEqual(asReply(reply).body, { kind: 'json', value: 5 });
});

for (const [what, value] of [
  ['nothing', undefined],
  ['null', null],
  ['a plain object', { json: 1 }],
  ['a text', 'x'],
  ['a list', [new Response()]],
] as const) {
  test(`a handler that returns ${what} gets an error, because it returns no Response`, async () => {
    const message = new TypeError('Potassium Response object not returned');
    assert.throws(() => answerOf(() => value), message);
    await assert.rejects(answerOf(() => Promise.resolve(value)) as Promise<unknown>, message);
  });
}

for (const [what, value] of [
  ['an Error', new Error('e')],
  ["the web's Response", new globalThis.Response('x')],
  ['a Blob', new Blob(['x'])],
] as const) {
  test(`${what} from any kind of route is passed on unchanged`, async () => {
    const app = new Potassium('x');
    app.handler('/handler', (() => value) as unknown as () => Response);
    app.background('/background', () => value);
    for (const route of ['/handler', '/background']) assert.equal(load(app).handle(route, 'in', CTX), value);
    const legacy = new Potassium('x');
    legacy.handler(() => Promise.resolve(value));
    assert.equal(await load(legacy).handle('/', 'in', CTX), value);
  });
}

test('whatever is thrown, at once or later, is thrown on: a Response is the answer of its call', async () => {
  const thrown = new Response({ status: 404, json: 'gone' });
  const thrower = (): never => {
    throw thrown as unknown as Error;
  };
  const later = (): Promise<never> => Promise.resolve().then(thrower);
  const app = new Potassium('x');
  app.background('/background', later);
  const legacy = new Potassium('x');
  legacy.handler(thrower);
  for (const answer of [
    (): unknown => answerOf(thrower),
    (): unknown => answerOf(later),
    (): unknown => load(app).handle('/background', 'in', CTX),
    (): unknown => load(legacy).handle('/', 'in', CTX),
  ])
    await assert.rejects(
      async () => await answer(),
      (seen) => seen === thrown,
    );
  const { proxy: revoked, revoke } = Proxy.revocable({}, {});
  revoke();
  for (const other of [new Error('e'), undefined, { status: 404 }, revoked]) {
    const throwOther = (): never => {
      throw other as Error;
    };
    assert.throws(
      () => answerOf(throwOther),
      (seen) => seen === other,
    );
  }
});

test("a Response in Python's order of arguments, or in that of the web, is refused with the right form", () => {
  const make = Response as unknown as new (...given: unknown[]) => unknown;
  for (const given of [[201, { json: 1 }], ['text', { status: 201 }], [null], [[]]]) {
    assert.throws(() => new make(...given), /new Response\(\{ status: 201, json/);
  }
});

test('a content type set after the json goes before it', () => {
  const response = new Response({ json: 1 });
  response.headers['content-type'] = 'application/problem+json';
  assert.equal(replyOf(response).head.contentType, 'application/problem+json');
});

for (const body of [5, true, {}, { length: 1 }]) {
  test(`a body that is ${JSON.stringify(body)} is refused`, () => {
    const response = new Response({ body: body as unknown as ResponseBody });
    assert.throws(() => replyOf(response), /body must be text, bytes, or an iterable of them/);
  });
}

test('a header with a line break in it is refused: behind the break another header could stand', () => {
  for (const headers of [
    { 'X-One': 'a\r\nSet-Cookie: b' },
    { 'X-One\nX-Two': 'a' },
    { 'Content-Type': 'a\nb' },
  ]) {
    assert.throws(() => replyOf(new Response({ body: '', headers })), { code: 'SERVE_OUTPUT_INVALID' });
  }
});

test('headers that are too long for any client are refused', () => {
  const response = new Response({ json: 1, headers: { 'X-Long': 'x'.repeat(100_000) } });
  assert.throws(() => replyOf(response), serveError('SERVE_OUTPUT_INVALID', /response headers/));
});

// background

test('a background function returns its result: JSON, a Response, or nothing', async () => {
  const app = new Potassium('x');
  app.background('/json', () => ({ a: 1 }));
  app.background('/nothing', () => {});
  app.background('/later', () => Promise.resolve([1]));
  app.background('/response', () => new Response({ status: 201, body: 'x' }));
  const loaded = load(app);
  const resultOf = async (route: string): Promise<Reply> => asReply(await loaded.handle(route, null, CTX));
  assert.deepEqual((await resultOf('/json')).body, { kind: 'json', value: { a: 1 } });
  assert.deepEqual((await resultOf('/nothing')).body, { kind: 'json', value: undefined });
  assert.deepEqual((await resultOf('/later')).body, { kind: 'json', value: [1] });
  assert.equal((await resultOf('/response')).head.status, 201);
});

// legacy

for (const [what, output] of [
  ['an object', { a: 1 }],
  ['a list', [1]],
  ['a text', 'x'],
  ['null', null],
  ['nothing', undefined],
  ['bytes', new Uint8Array([1])],
] as const) {
  test(`a legacy handler gets (cache, jsonIn), and ${what} from it is JSON`, async () => {
    for (const wrap of [(value: unknown) => value, (value: unknown) => Promise.resolve(value)]) {
      const app = new Potassium<object>('x');
      const seen: unknown[] = [];
      app.init(() => app.setCache({ cached: 1 }));
      app.handler((cache, jsonIn) => {
        seen.push(cache, jsonIn);
        return wrap(output);
      });
      const loaded = load(app);
      await loaded.init(initContext(), SURROUNDINGS);
      const reply = asReply(await loaded.handle('/', 'in', CTX));
      assert.deepEqual(seen, [{ cached: 1 }, 'in']);
      assert.deepEqual(reply.head, { status: 200, contentType: 'application/json', headers: '', phrase: '' });
      assert.deepEqual(reply.body, { kind: 'json', value: output });
    }
  });
}

test('inputs of a route may run again if the route or the config says so', () => {
  const app = new Potassium('x');
  app.handler('/as-config', () => new Response());
  app.background('/never', () => null, { repeatable: false });
  app.background('/five', () => null, { repeatable: true, attempts: 5 });
  for (const [config, expected] of [
    [{}, [1, 1, 5]],
    [{ repeatable: true }, [3, 1, 5]],
    [{ repeatable: true, attempts: 2 }, [2, 1, 5]],
  ] as const)
    assert.deepEqual(
      fromPotassiumApp({ app, config })?.description.routes.map(({ attempts }) => attempts),
      expected,
    );
  for (const wrong of [{ repeatable: 1 }, { attempts: 0 }, { attempts: '3' }] as object[])
    assert.throws(() => app.background('/wrong', wrong), TypeError);
  assert.throws(() => fromPotassiumApp({ app, config: { attempts: 0.5 } }), /`config`: attempts must be/);
});
