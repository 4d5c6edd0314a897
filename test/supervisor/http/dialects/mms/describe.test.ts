/** The descriptions are valid OpenAPI, according to an independent validator. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import type { ApiPaths } from '../../../../../supervisor/http/openapi/operation.js';
import {
  INFERENCE_API,
  MANAGEMENT_API,
  WHOLE_API,
  describeApi,
  modelApi,
} from '../../../../../supervisor/http/dialects/mms/describe.js';

/** Converts it to JSON and back, as a client receives it. */
const sent = (paths: ApiPaths): Record<string, unknown> =>
  JSON.parse(JSON.stringify(describeApi(paths))) as Record<string, unknown>;

for (const [what, paths] of Object.entries({
  'the main listener': INFERENCE_API,
  'the management listener': MANAGEMENT_API,
  'a listener of both': WHOLE_API,
  'one model': modelApi('a b/ü', '1.0'),
}))
  test(`the description of ${what} is valid`, async () => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(sent(paths));
    assert.ok(valid, JSON.stringify(errors, null, 1));
    assert.equal(validator.version, '3.0');
  });

test('a description with a missing member is not valid', async () => {
  const { '/ping': ping = {} } = INFERENCE_API;
  const { get } = ping;
  const broken = { '/ping': { get: { ...get, responses: undefined } } } as unknown as ApiPaths;
  assert.equal((await new Validator().validate(sent(broken))).valid, false);
});

test('the names in a path are exactly its path parameters', () => {
  for (const [path, methods] of Object.entries(WHOLE_API))
    for (const { operationId, parameters = [] } of Object.values(methods)) {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const declared = (parameters as readonly { readonly in: string; readonly name: string }[])
        .filter((one) => one.in === 'path')
        .map(({ name }) => name);
      assert.deepEqual(declared, named, operationId);
    }
});
