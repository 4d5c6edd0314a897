/** Names of operations: no two are alike, and each depends on its own method and path only. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { operationIdOf } from '../../../../supervisor/http/openapi/operation-id.js';
import { writtenPath, type ApiMethod } from '../../../../supervisor/http/openapi/operation.js';

for (const [path, id] of [
  ['/', 'post_'],
  ['/a/b', 'post_a_b'],
  ['/a-b', 'post_a__2db'],
  ['/a_b', 'post_a__5fb'],
  ['/a//b', 'post_a___2fb'],
  ['/models/fill-mask/', 'post_models_fill__2dmask_'],
  ['/grüße', 'post_gr__25C3__25BC__25C3__259Fe'],
] as const)
  test(`POST ${path} is ${id}`, () => assert.equal(operationIdOf('post', writtenPath(path)), id));

const methods = fc.constantFrom<ApiMethod[]>('get', 'put', 'post', 'delete', 'options');
/** Paths of the signs that a name replaces, and of what it replaces them with. */
const paths = fc
  .array(fc.constantFrom('/', '_', '-', '{', '}', '2', 'd', 'f', '2d', '__', 'ü', '?', '%2F'), {
    maxLength: 8,
  })
  .map((parts) => writtenPath(`/${parts.join('')}`));

test('two operations never have the same name', () => {
  fc.assert(
    fc.property(methods, paths, methods, paths, (one, onePath, other, otherPath) => {
      fc.pre(one !== other || onePath !== otherPath);
      assert.notEqual(operationIdOf(one, onePath), operationIdOf(other, otherPath));
      assert.match(operationIdOf(one, onePath), /^[a-z]+_\w*$/);
    }),
    { numRuns: 2000 },
  );
});
