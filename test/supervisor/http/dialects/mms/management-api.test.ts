/** The description of the management API: valid OpenAPI, with exactly the paths and methods that exist. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import type { RequestContext } from '../../../../../supervisor/http/request/request-context.js';
import { MANAGEMENT_API, describeApi } from '../../../../../supervisor/http/dialects/mms/describe.js';
import { mmsManagement } from '../../../../../supervisor/http/dialects/mms/management.js';
import { Registry } from '../../../../../supervisor/models/models.js';

function refusalOf(method: string, path: string): string | null {
  const ask = { path, isWebSocket: false, listener: 'management', request: { method, url: path } };
  const { act } = mmsManagement.claim(ask as unknown as RequestContext, new Registry()) ?? { act: null };
  return act !== null && 'refuse' in act ? act.refuse.code : null;
}

test('the description of the management API is valid OpenAPI', async () => {
  const described = JSON.parse(JSON.stringify(describeApi(MANAGEMENT_API))) as Record<string, unknown>;
  const { valid, errors } = await new Validator().validate(described);
  assert.ok(valid, JSON.stringify(errors));
});

test('its operation ids are unique', () => {
  const ids = Object.values(MANAGEMENT_API).flatMap((methods) =>
    Object.values(methods).map(({ operationId }) => operationId),
  );
  assert.equal(new Set(ids).size, ids.length);
});

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
for (const [pattern, operations] of Object.entries(MANAGEMENT_API)) {
  const path = pattern.replace('{model_name}', 'digits').replace('{model_version}', '2');
  const described = Object.keys(operations).map((method) => method.toUpperCase());
  if (pattern.endsWith('/set-default')) continue; // any segment after the version is accepted and ignored
  test(`${pattern} takes ${described.join(', ')}, and nothing else`, () => {
    for (const method of METHODS) {
      const refused = described.includes(method) ? null : 'SERVE_METHOD_NOT_ALLOWED';
      assert.equal(refusalOf(method, path), refused, method);
    }
  });
}
