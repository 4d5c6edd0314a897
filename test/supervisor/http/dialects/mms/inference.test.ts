/** The paths of the inference API: described paths, claimed paths, and paths that the options warn of. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ServeError } from '../../../../../protocol/errors.js';
import type { RequestContext } from '../../../../../supervisor/http/request/request-context.js';
import { calledModel } from '../../../../../supervisor/http/dialects/mms/request.js';
import {
  INFERENCE_API,
  describeApi,
  modelApi,
} from '../../../../../supervisor/http/dialects/mms/describe.js';
import { mmsInference } from '../../../../../supervisor/http/dialects/mms/inference.js';
import type { Models } from '../../../../../supervisor/models/models.js';

/** A registry that finds every model, each with the route `/`. */
const MODELS = {
  default: null,
  find: ({ name }: { name: string }) => ({ spec: { name }, routes: new Map([['/', { kind: 'handler' }]]) }),
  describe: () => [{ model: { spec: { name: 'm' } }, isFirst: true, isLeaving: false }],
} as unknown as Models;

function claim(method: string, path: string): ReturnType<typeof mmsInference.claim> {
  const request = { method, url: path, headers: {} };
  return mmsInference.claim(
    { path, request, backend: { isMmsMode: true } } as unknown as RequestContext,
    MODELS,
  );
}

/** Replaces each parameter with a name. */
const filled = (path: string): string => path.replace(/\{\w+\}/g, 'm');

describe('every described path is claimed', () => {
  for (const [path, methods] of Object.entries(INFERENCE_API))
    for (const method of Object.keys(methods))
      test(`${method.toUpperCase()} ${path}`, () => {
        const operation = claim(method.toUpperCase(), filled(path));
        assert.ok(operation !== null && !('refuse' in operation.act), path);
      });
});

describe('any other path is not claimed', () => {
  for (const path of [
    '/predictions',
    '/predict',
    '/models/m',
    '/models/m/other',
    '/models/m/invoke/more',
    '/m/predict/more',
    '/pings',
    '/',
    '/api-description/more',
  ])
    test(path, () => assert.equal(claim('POST', path), null));
});

test('outside of its mode the root belongs to the house, whose clients get its errors', () => {
  const request = { method: 'OPTIONS', url: '/', headers: {} };
  const context = { path: '/', request, backend: { isMmsMode: false } } as unknown as RequestContext;
  assert.equal(mmsInference.claim(context, MODELS), null);
});

test('the dialect lists exactly the described paths', () => {
  assert.deepEqual([...mmsInference.paths.keys()], Object.keys(INFERENCE_API));
});

test('the paths are in the order that clients know', () => {
  const { openapi, info, paths } = describeApi(INFERENCE_API) as {
    openapi: string;
    info: { title: string; version: string };
    paths: object;
  };
  assert.deepEqual([openapi, info.title, info.version], ['3.0.1', 'Model Server APIs', '1.0.0']);
  const known = ['/', '/{model_name}/predict', '/ping', '/predictions/{model_name}', '/api-description'];
  const all = Object.keys(paths).filter((path) => path !== '/predictions/{model_name}/{model_version}');
  assert.deepEqual(all, [...known, '/invocations', '/models/{model_name}/invoke']);
});

test('operation ids are unique', () => {
  const ids = Object.values(INFERENCE_API).flatMap((methods) =>
    Object.values(methods).map(({ operationId }) => operationId),
  );
  assert.equal(new Set(ids).size, ids.length);
});

test('a model is described at its own path, escaped', () => {
  assert.deepEqual(Object.keys(modelApi('a b/ü', '1.0')), ['/predictions/a%20b%2F%C3%BC/1.0']);
});

test('the older path of a model that is being unregistered is claimed, so that its calls get that error', () => {
  const leaving = new ServeError('SERVE_NOT_READY', 'it is being unregistered');
  const find = (): never => {
    throw leaving;
  };
  const model = { spec: { name: 'm' } };
  const models = { ...MODELS, find, leaving: () => model } as unknown as Models;
  const request = { method: 'POST', url: '/m/predict', headers: {} };
  const context = { path: '/m/predict', request, model: null } as unknown as RequestContext;
  assert.throws(() => mmsInference.claim(context, models), leaving);
  assert.equal(context.model, model, 'the words and the log name it');
});

describe('the model that a path names', () => {
  for (const path of Object.keys(INFERENCE_API).filter((path) => path !== '/'))
    test(path, () => {
      assert.equal(calledModel(filled(path)), path.includes('{') ? 'm' : '');
      assert.equal(
        calledModel(`/x${path}`),
        path === '/{model_name}/predict' ? null : calledModel(`/x${path}`),
      );
    });
  for (const path of ['/', '/predictions', '/models/m/', '/models/m/other', '/pings', '/predict'])
    test(`${path} is not a path that calls a model`, () => assert.equal(calledModel(path), null));
});
