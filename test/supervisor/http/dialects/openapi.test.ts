/**
 * The document of each listener with every kind of model: valid by an independent validator, whole, and true: each
 * operation that it describes is one that a dialect carries out.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import type { RequestContext } from '../../../../supervisor/http/request/request-context.js';
import type { LoadedInfo } from '../../../../protocol/wire/messages.js';
import { claim, dialectsOf, type Dialects } from '../../../../supervisor/http/dialects/index.js';
import type { Models } from '../../../../supervisor/models/models.js';
import { describedModels } from '../openapi/described-models.js';
import {
  BANANA,
  DEFAULT,
  ONNX,
  OTHERS,
  PLAIN,
  SERVERS,
  SERVICE,
  TENSORS,
  type Served,
} from '../openapi/described-servers.js';

interface ApiOperation {
  readonly operationId: string;
  readonly deprecated?: boolean;
  readonly 'x-websocket'?: boolean;
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly requestBody?: {
    readonly required?: boolean;
    readonly content: Record<string, { schema: object }>;
  };
  readonly responses: Readonly<Record<string, { readonly content?: Record<string, { schema: object }> }>>;
  readonly security?: readonly object[];
}

interface Document {
  readonly components: { readonly responses: Readonly<Record<string, { readonly description: string }>> };
  readonly paths: Readonly<Record<string, Readonly<Record<string, ApiOperation>>>>;
}

function contextOf(
  served: Served,
  registry: Models,
  asked: Partial<RequestContext['request']>,
): RequestContext {
  const keys = { required: served.keys === true };
  const backend = {
    models: registry,
    isMmsMode: served.settings.isMmsMode,
    keys,
    management: { keys },
    options: {
      maxBody: 1e6,
      openapiAll: served.all === true,
      modelStore: served.hasStore === true ? '/models' : null,
      models: null,
      mmsExceptionStatus: served.mmsExceptionStatus ?? '503',
    },
  };
  return {
    backend,
    listener: 'main',
    headerNames: { keys: ['x-banana-api-key'] },
    isWebSocket: asked.headers?.upgrade !== undefined,
    response: { getHeader: () => undefined, setHeader: () => {} },
    path: decodeURIComponent(asked.url?.split('?')[0] ?? ''),
    request: { headers: {}, ...asked },
  } as unknown as RequestContext;
}

function documentOf(served: Served): { document: Document; dialects: Dialects; registry: Models } {
  const dialects = dialectsOf(served.settings).main as Dialects;
  const registry = describedModels(served.models);
  const context = contextOf(served, registry, { method: 'GET', url: '/openapi.json' });
  const { act } = claim(context, dialects, true);
  assert.ok('write' in act);
  const ctx = { body: Buffer.alloc(0) } as unknown as Parameters<typeof act.write>[0];
  void act.write(ctx, context);
  const made = ctx.body;
  void act.write(ctx, context);
  assert.equal(ctx.body, made, 'it is made once while the models are the same');
  return { document: JSON.parse(String(made)) as Document, dialects, registry };
}

function operationsOf({ paths }: Document): { path: string; method: string; operation: ApiOperation }[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
}

const validator = new Validator();

for (const [what, served] of Object.entries(SERVERS))
  describe(`the document of ${what}`, () => {
    const { document, dialects, registry } = documentOf(served);

    test('is valid OpenAPI 3.1', async () => {
      const { valid, errors } = await validator.validate(
        structuredClone(document) as unknown as Record<string, unknown>,
      );
      assert.ok(valid, JSON.stringify(errors, null, 1));
      assert.equal(validator.version, '3.1');
    });

    test('names each operation, and the parameters of each path, once', () => {
      const operations = operationsOf(document);
      const ids = operations.map(({ operation }) => operation.operationId);
      assert.deepEqual(ids, [...new Set(ids)]);
      for (const { path, operation } of operations) {
        const declared = (operation.parameters ?? []).filter((one) => one.in === 'path');
        const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
        assert.deepEqual(
          declared.map(({ name }) => name),
          named,
          path,
        );
      }
    });

    test('gives media types besides JSON as bytes', () => {
      for (const { path, operation } of operationsOf(document))
        for (const { content = {} } of [operation.requestBody ?? {}, ...Object.values(operation.responses)])
          for (const [type, { schema }] of Object.entries(content))
            if (type !== 'application/json')
              assert.deepEqual(schema, { type: 'string', format: 'binary' }, path);
    });

    test('has only what a dialect carries out, with a key where one is needed', () => {
      for (const { path, method, operation } of operationsOf(document)) {
        const named = path.replace(/\{(?:model|model_name)\}/g, 'banana').replace(/\{\w+\}/g, 'x');
        const url = path === '/invocations' ? `${path}?model_name=${served.models[0]?.name}` : named;
        const headers =
          operation['x-websocket'] === true ? { upgrade: 'websocket' } : { accept: 'text/html' };
        const context = contextOf(served, registry, { method: method.toUpperCase(), url, headers });
        const { act, auth } = claim(context, dialects, true);
        assert.ok(!('refuse' in act), `${method} ${path}`);
        const needsKey = served.keys === true && auth !== 'none';
        assert.equal(operation.security !== undefined, needsKey, `${method} ${path}`);
      }
    });
  });

function operationAt({ paths }: Document, method: string, path: string): ApiOperation {
  const operation = paths[path]?.[method];
  assert.ok(operation !== undefined, `${method} ${path}`);
  return operation;
}

describe('the document', () => {
  test('has every own path of the dialects', () => {
    for (const served of Object.values(SERVERS).filter(({ models }) => models.length > 0)) {
      const { document, dialects } = documentOf({ ...served, all: true });
      const described = Object.keys(document.paths);
      const isThere = (path: string): boolean => {
        const filled = path.replace(/[.*+?()[\]\\]/g, '\\$&').replace(/\{\w+\}/g, '[^/]+');
        return described.some((one) => new RegExp(`^${filled}/?$`).test(one)); // the gateway's paths end in a slash
      };
      const dialectsOfTasks = ['openai', 'rerank']; // their paths need a model of that task
      const others = dialects.inOrder.filter(({ name }) => !dialectsOfTasks.includes(name));
      const own = others.flatMap(({ paths }) => [...paths.keys()]);
      const hasDefault = served.models.some(({ isDefault }) => isDefault === true);
      const missing = own.filter((path) => path !== '/' && !isThere(path));
      assert.deepEqual(missing, hasDefault ? [] : ['/_k/warmup', '/_k/status', '/__status__']);
    }
  });

  test('has a route at all of its paths, with the same input and output', () => {
    const { document } = documentOf({
      settings: PLAIN,
      models: [{ name: 'm', info: BANANA, isDefault: true }],
      all: true,
    });
    const deprecated = [
      '/',
      '/models/m/',
      '/predictions/m',
      '/predictions/m/1',
      '/models/m/invoke',
      '/m/predict',
    ].map((path) => {
      const { requestBody, deprecated = false } = operationAt(document, 'post', path);
      const { schema } = requestBody?.content['application/json'] ?? {};
      const properties = { prompt: { type: 'string' } };
      assert.deepEqual(schema, { type: 'object', properties, additionalProperties: true }, path);
      return deprecated;
    });
    assert.deepEqual(deprecated, [false, false, false, false, false, true]);
    assert.equal(operationAt(document, 'get', '/__status__').deprecated, true);
  });

  test('has each version of a model, and the default one where none is named', () => {
    const { document } = documentOf({ settings: { ...PLAIN, isMmsMode: true }, models: OTHERS });
    const calls = Object.keys(document.paths).filter((path) => path.startsWith('/predictions/'));
    assert.deepEqual(calls, [
      '/predictions/banana',
      '/predictions/other',
      '/predictions/several',
      '/predictions/banana/1',
      '/predictions/banana/2.0',
      '/predictions/other/1',
      '/predictions/several/1',
    ]);
    assert.deepEqual(
      Object.keys(document.paths['/predictions/several'] ?? {}),
      ['options'],
      'no route is meant',
    );
  });

  test("has the statuses of a dialect's errors as the operator set them", () => {
    const of = (mmsExceptionStatus: string): string => {
      const { document } = documentOf({ settings: PLAIN, models: [DEFAULT], mmsExceptionStatus, all: true });
      return document.components.responses['MmsError503']?.description ?? '';
    };
    assert.match(of('503'), /The model failed on this call/);
    assert.doesNotMatch(of('500'), /The model failed on this call/);
  });

  test("has an app's route in place of the server's own path", () => {
    const { document } = documentOf({ settings: PLAIN, models: [DEFAULT, ...OTHERS], all: true });
    assert.deepEqual(Object.keys(document.paths['/predictions/other'] ?? {}), ['post']);
    assert.ok(
      'SERVE_ERROR' in {} ||
        operationAt(document, 'post', '/predictions/other').responses['507'] === undefined,
    );
    assert.deepEqual(Object.keys(document.paths['/openapi.json'] ?? {}), ['post', 'get']);
  });

  test('has a WebSocket as get', () => {
    const { document } = documentOf({ settings: PLAIN, models: [DEFAULT] });
    for (const path of ['/chat', '/models/app/chat']) {
      const { 'x-websocket': isWebSocket, requestBody, responses } = operationAt(document, 'get', path);
      assert.equal(isWebSocket, true);
      assert.equal(requestBody, undefined);
      assert.ok('101' in responses && '426' in responses);
    }
  });

  test('has free inputs and outputs while a model is loading', () => {
    const { document } = documentOf({
      settings: PLAIN,
      models: [{ name: 'm', info: null, isDefault: true }],
      all: true,
    });
    for (const path of ['/', '/models/m/', '/predictions/m']) {
      const { requestBody, responses } = operationAt(document, 'post', path);
      for (const content of [requestBody?.content, responses['200']?.content])
        assert.deepEqual(content, {
          'application/json': { schema: {} },
          '*/*': { schema: { type: 'string', format: 'binary' } },
        });
    }
  });

  test('has the tensors of a signature at the only route of the app', () => {
    const { document } = documentOf({
      settings: PLAIN,
      models: [{ name: 'm', info: TENSORS, isDefault: true }],
      all: true,
    });
    for (const path of ['/infer', '/models/m/infer', '/predictions/m']) {
      const { requestBody, responses } = operationAt(document, 'post', path);
      const { schema: input } = requestBody?.content['application/json'] ?? {};
      const { schema: output } = responses['200']?.content?.['application/json'] ?? {};
      assert.deepEqual(
        [input, output].map((one) => (one as { required: unknown }).required),
        [['x'], ['x']],
      );
    }
  });

  test("has the app's own paths first, and those of clients only beside an app of their kind", () => {
    const pathsOf = (info: LoadedInfo | null, more: Partial<Served> = {}): string[] =>
      Object.keys(
        documentOf({ settings: PLAIN, models: [{ name: 'm', info, isDefault: true }], ...more }).document
          .paths,
      );
    assert.deepEqual(pathsOf(BANANA).slice(0, 2), ['/', '/models/m/']);
    const firsts = ['/start/v2/', '/_k/warmup', '/ping', '/v2'];
    const kindsOf = (...given: Parameters<typeof pathsOf>): string[] => {
      const paths = pathsOf(...given);
      assert.ok(paths.includes('/_k/jobs/{id}') && paths.includes('/livez'));
      return firsts.filter((path) => paths.includes(path));
    };
    assert.deepEqual(kindsOf(null), []);
    assert.deepEqual(kindsOf(BANANA), ['/start/v2/']);
    assert.deepEqual(kindsOf(DEFAULT.info), ['/_k/warmup']);
    assert.deepEqual(kindsOf(SERVICE), ['/ping']);
    assert.deepEqual(kindsOf(ONNX), ['/v2']);
    assert.deepEqual(kindsOf(BANANA, { hasStore: true }), ['/start/v2/', '/ping']);
    assert.deepEqual(kindsOf(null, { all: true }), firsts);
    const mixed = [
      { name: 'a', info: BANANA, isDefault: true },
      { name: 'b', info: ONNX },
    ];
    assert.ok(!pathsOf(null, { models: mixed }).includes('/v2/models/a/infer'), 'a takes no tensors');
  });

  test('names the calls of a model without code, its datatypes, and the one form of its outputs', () => {
    const { document } = documentOf({ ...(SERVERS['a model without code'] as Served), all: true });
    const named = [
      '/',
      '/models/digits/',
      '/v2/models/digits/infer',
      '/v2/models/digits/versions/1/infer',
      '/predictions/digits',
      '/predictions/digits/1',
    ].map((path) => operationAt(document, 'post', path).operationId);
    assert.deepEqual(named, [
      'callDigits',
      'callDigitsByName',
      'callDigitsV2',
      'callDigitsVersion1V2',
      'callDigitsPredictions',
      'callDigitsVersion1Predictions',
    ]);
    for (const path of ['/', '/invocations']) {
      const { requestBody, responses } = operationAt(document, 'post', path);
      assert.equal(requestBody?.required, true, 'an empty body is 400');
      assert.ok(!('default' in responses), 'there is no code that could choose a status');
      const { schema } = responses['200']?.content?.['application/json'] ?? {};
      assert.deepEqual(schema, requestBody?.content['application/json']?.schema);
    }
    const infer = operationAt(document, 'post', '/v2/models/digits/infer');
    assert.match(JSON.stringify(infer.requestBody), /"datatype":\{"type":"string","enum":\["BOOL",/);
  });

  test('asks JSON of a route that takes nothing else', () => {
    const { document } = documentOf({ settings: PLAIN, models: [DEFAULT] });
    const { requestBody } = operationAt(document, 'post', '/');
    assert.deepEqual(
      [requestBody?.required, Object.keys(requestBody?.content ?? {})],
      [true, ['application/json']],
    );
  });
});

test('the answers of pages that are no success are described too', () => {
  const { paths } = documentOf(SERVERS['a Banana app, with all paths'] as Served).document;
  for (const [path, method, status] of [
    ['/', 'get', 'default'],
    ['/_k/page/{name}', 'get', '404'],
    ['/_k/live', 'get', '503'],
    ['/_k/warmup', 'post', '403'],
    ['/v2/health/ready', 'get', '400'],
    ['/v2/models/{model}/ready', 'get', '400'],
  ] as const)
    assert.ok(status in (paths[path]?.[method]?.responses ?? {}), `${status} of ${method} ${path}`);
});
