import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CallPlan } from '../../../../supervisor/http/call/call-plan.js';
import { checkBody, routeCall } from '../../../../supervisor/http/call/find-route.js';
import { Body } from '../../../../supervisor/http/socket/body-memory.js';
import type { RequestContext } from '../../../../supervisor/http/request/request-context.js';
import type { Model } from '../../../../supervisor/models/model.js';
import type { Route } from '../../../../protocol/wire/messages.js';

const route = (input: Route['input']): Route => ({
  path: '/',
  kind: 'handler',
  input,
  webhook: '',
  maxBatch: 1,
  attempts: 1,
});

/** Finds the route for a request to `/` of an app that has one route. */
function ask(only: Route, type?: string, format = 'auto'): Route {
  const target = { model: {} as Model, route: '/' };
  const context = { request: { headers: { 'content-type': type } } } as RequestContext;
  return routeCall(context, { target, format }, target, new Map([[only.path, only]]), null).route;
}

test('a path that is not a route is 404, whatever is sent', () => {
  const elsewhere = { ...route('any'), path: '/elsewhere' };
  assert.throws(() => ask(elsewhere, 'application/json'), { code: 'SERVE_NOT_FOUND' });
  assert.throws(() => ask(elsewhere), { code: 'SERVE_NOT_FOUND' });
});

test('a plain request to a WebSocket route is 426', () => {
  assert.throws(() => ask({ ...route('any'), kind: 'websocket' }), { code: 'SERVE_UPGRADE_REQUIRED' });
});

for (const type of [
  'application/json',
  'Application/JSON',
  ' application/json ',
  'application/json; charset=utf-8',
  'application/json;charset=utf-8',
  'application/problem+json',
  'application/vnd.api.v1+json',
]) {
  test(`a JSON route takes ${type}`, () => assert.equal(ask(route('json'), type).input, 'json'));
}

for (const type of [
  undefined,
  '',
  'text/plain',
  'text/json',
  'application/jsonp',
  'application/x-json',
  'application/+json',
  'application/octet-stream',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=json',
  'image/application/json',
]) {
  test(`${type ?? 'no type'} is a bad request on a JSON route, and accepted on a raw one`, () => {
    assert.throws(() => ask(route('json'), type), { code: 'SERVE_BAD_REQUEST' });
    assert.equal(ask(route('any'), type).input, 'any');
  });
}

const body = (...parts: string[]): Body => {
  const memory = new Body(0);
  for (const part of parts) memory.keep(Buffer.from(part));
  return memory;
};

type Routed = Parameters<typeof checkBody>[0];
const JOB = { delayMs: 0, ttlMs: 1, priority: 0, idempotencyKey: null };
const routed = (job: Routed['job'], input: Route['input'], format = 'auto'): Routed => ({
  job,
  plan: { format } as CallPlan,
  route: route(input),
});
const waited = (input: Route['input'], format?: string): Routed => routed(null, input, format);

test('an empty body is refused on a JSON route only', () => {
  assert.throws(() => checkBody(waited('json'), body()), { code: 'SERVE_BAD_BODY' });
  checkBody(waited('json'), body('1'));
  checkBody(waited('any'), body());
});

test('a JSON route takes every body in a format that the dialect fixes; the worker checks it', () => {
  assert.equal(ask(route('json'), 'application/octet-stream', 'open-inference').input, 'json');
  checkBody(waited('json', 'open-inference'), body());
});

test('the front refuses broken JSON of jobs only; of other calls the worker does', () => {
  const job = routed(JOB, 'json');
  checkBody(waited('json'), body('{"a"', ':}'));
  assert.throws(() => checkBody(job, body('{"a"', ':}')), { code: 'SERVE_BAD_BODY' });
  checkBody(job, body('[1, "x"]'));
});
