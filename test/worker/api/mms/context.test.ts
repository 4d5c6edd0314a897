import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Context, beginBatch } from '../../../../worker/api/mms/context.js';
import { PredictionException } from '../../../../worker/api/http-error.js';

function newContext(): Context {
  const facts = { modelName: 'm', manifest: null, systemProperties: {}, worker: {}, log: {} };
  return new Context(facts as unknown as ConstructorParameters<typeof Context>[0]);
}

function withItems(count: number, headers: Record<string, string> = {}): Context {
  const context = newContext();
  const one = { item: {}, parts: () => [], fieldTypes: () => ({ 'X-Real': '', photo: 'image/png' }) };
  const job = { id: 'j', attempt: 1 };
  const request = { requestId: 'r', headers, signal: new AbortController().signal, job, progress: () => {} };
  beginBatch(context, Array<typeof one>(count).fill(one), Array<typeof request>(count).fill(request));
  return context;
}

/** Names as Python has them, of everything that TypeScript has. */
function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The one name that differs by more than its spelling. */
const PYTHON_NAMES: Readonly<Record<string, string>> = { getAllRequestHeaders: 'get_all_request_header' };

test('each member of a context and of its parts has its name in Python, too', () => {
  const context = withItems(1);
  const parts = [context, context.metrics, context.requestProcessor?.[0], new PredictionException('x')];
  for (const part of parts as object[]) {
    const names = Object.getOwnPropertyNames(Object.getPrototypeOf(part)).concat(Object.keys(part));
    const camel = names.filter((name) => /^[a-z]+([A-Z][a-z]+)+$/.test(name));
    assert.ok(camel.length > 0);
    for (const name of camel) {
      const alias = PYTHON_NAMES[name] ?? snakeCase(name);
      assert.ok(alias in part, alias);
    }
  }
});

test('a context without a batch has no items: methods that need one throw', () => {
  const context = newContext();
  assert.equal(context.getRequestId(), undefined);
  assert.equal(context.requestIds, null);
  assert.throws(() => context.setResponseStatus(200), /there is no item 0 while the model is loaded/);
  assert.throws(() => withItems(2).getParts(2), /there is no item 2; this batch has 2/);
});

test('an invalid status is refused by the call that sets it', () => {
  const context = withItems(1);
  for (const code of [199, 600, 200.5, Number.NaN]) {
    assert.throws(
      () => context.set_response_status(code),
      /^RangeError: status .* is not a whole number from 200 to 599$/,
    );
  }
  assert.deepEqual(context.getResponseStatus(0), [200, '']);
});

test('a response header of two lines is refused, and any value becomes text', () => {
  const context = withItems(1);
  assert.throws(
    () => context.setResponseHeader(0, 'X-A', 'a\r\nSet-Cookie: b'),
    /"X-A" has a line break in it/,
  );
  context.setResponseHeader(0, 'X-A', 5);
  context.set_response_header(0, 'x-a', null);
  assert.deepEqual(context.get_response_headers(0), { 'x-a': 'null' });
});

test('a field of a form cannot pass for a header of the request', () => {
  const all = withItems(1, { 'x-real': '10.0.0.1' }).getAllRequestHeaders(0);
  assert.deepEqual(
    [all['X-Real'], all['x-real'], all['photo']],
    ['10.0.0.1', '10.0.0.1', { 'content-type': 'image/png' }],
  );
  assert.deepEqual(Object.keys(all).sort(), ['photo', 'x-real']);
  assert.equal('X-REAL' in all, true);
  assert.equal(all['constructor'], undefined);
});
