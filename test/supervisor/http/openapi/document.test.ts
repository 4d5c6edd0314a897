/** The document that is made of the descriptions of several dialects. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../../../../protocol/errors.js';
import {
  openApiDocument,
  type DescribedDialect,
  type DescribedKeys,
} from '../../../../supervisor/http/openapi/document.js';
import type { DescribedOperation } from '../../../../supervisor/http/openapi/operation.js';

interface Sent {
  readonly paths: Readonly<Record<string, Readonly<Record<string, SentOperation>>>>;
  readonly components: Readonly<Record<'responses' | 'schemas' | 'securitySchemes', Record<string, object>>>;
}

interface SentOperation {
  readonly description: string;
  readonly responses: Readonly<Record<string, object>>;
  readonly security?: readonly object[];
}

const operation = (
  path: string,
  description: string,
  more: Partial<DescribedOperation> = {},
): DescribedOperation => ({
  path,
  method: 'post',
  operationId: 'callA',
  description,
  auth: 'call',
  responses: { 200: { description: 'Done.' } },
  ...more,
});

const dialect = (
  operations: readonly DescribedOperation[],
  more: Partial<DescribedDialect> = {},
): DescribedDialect => ({ operations, errorBody: null, statusOf: () => 500, ...more });

const NO_KEYS = { headers: ['x-key'], toCall: false, toManage: false };

function documentOf(dialects: readonly DescribedDialect[], keys: DescribedKeys = NO_KEYS): Sent {
  return openApiDocument('m', dialects, keys) as Sent;
}

test('the first dialect that describes a method of a path has it', () => {
  const { paths } = documentOf([
    dialect([operation('/a', 'first')]),
    dialect([operation('/a', 'second'), operation('/a', 'second', { method: 'get' })]),
  ]);
  assert.equal(paths['/a']?.['post']?.description, 'first');
  assert.equal(paths['/a']?.['get']?.description, 'second');
});

test('a route of the app keeps other dialects from its path, but not those before it', () => {
  const route = operation('/a', 'route', { ownsPath: true });
  const page = (description: string): DescribedOperation => operation('/a', description, { method: 'get' });
  const { paths } = documentOf([
    dialect([page('before')]),
    dialect([route]),
    dialect([page('after'), operation('/a', 'after', { method: 'options' })]),
  ]);
  assert.deepEqual(Object.keys(paths['/a'] ?? {}), ['post', 'get']);
  assert.equal(paths['/a']?.['get']?.description, 'before');
});

test('the routes of apps come first, whatever has precedence', () => {
  const { paths } = documentOf([
    dialect([operation('/a', ''), operation('/b', '')]),
    dialect([operation('/b', '', { ownsPath: true }), operation('/c', '', { ownsPath: true })]),
  ]);
  assert.deepEqual(Object.keys(paths), ['/c', '/a', '/b']);
});

test('errors have the status and the body of their dialect, once for each status', () => {
  const failures = [new ServeError('SERVE_QUEUE_FULL'), new ServeError('SERVE_NOT_READY')];
  const errorBody = { name: 'Trouble', schema: { type: 'object' } } as const;
  const style = { errorBody, statusOf: () => 418 };
  const { paths, components } = documentOf([
    dialect([operation('/a', '', { failures }), operation('/b', '', { failures: failures.slice(1) })], style),
    dialect([operation('/c', '', { failures })]),
  ]);
  assert.deepEqual(paths['/a']?.['post']?.responses['418'], { $ref: '#/components/responses/Trouble418' });
  assert.deepEqual(paths['/b']?.['post']?.responses['418'], { $ref: '#/components/responses/Trouble418' });
  assert.deepEqual(paths['/c']?.['post']?.responses['500'], { $ref: '#/components/responses/Error500' });
  assert.deepEqual(components.responses['Trouble418'], {
    description: 'The queue is full; try again later. No worker of this model can start.',
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Trouble' } } },
  });
  assert.deepEqual(components.schemas, { Trouble: { type: 'object' } });
});

test('keys are described where a request needs one, and nowhere else', () => {
  const operations = (['none', 'call', 'body', 'management'] as const).map((auth) =>
    operation(`/${auth}`, '', { auth }),
  );
  const securityOf = (keys: DescribedKeys): unknown[] => {
    const { paths } = documentOf([dialect(operations, { statusOf: () => 401 })], keys);
    return Object.values(paths).map(({ post }) => [post?.security, '401' in (post?.responses ?? {})]);
  };
  const call = [{ bearer: [] }, { 'x-key': [] }];
  const manage = [{ 'management-bearer': [] }, { 'management-x-key': [] }];
  const none = [undefined, false];
  assert.deepEqual(securityOf(NO_KEYS), [none, none, none, none]);
  assert.deepEqual(securityOf({ ...NO_KEYS, toCall: true }), [
    none,
    [call, true],
    [[{}, ...call], false], // its dialect answers a wrong key in its own way
    none,
  ]);
  assert.deepEqual(securityOf({ ...NO_KEYS, toManage: true }), [none, none, none, [manage, true]]);
  const { components } = documentOf([dialect([])], { ...NO_KEYS, toCall: true, toManage: true });
  assert.deepEqual(
    Object.keys(components.securitySchemes),
    [...call, ...manage].flatMap((one) => Object.keys(one)),
  );
});
