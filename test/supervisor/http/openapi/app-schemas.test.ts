import assert from 'node:assert/strict';
import { test } from 'node:test';
import { appSchema } from '../../../../supervisor/http/openapi/schemas.js';

const AT = '#/components/schemas/';

test('a schema without references stays where it is, without the words about itself', () => {
  const given = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'x',
    type: 'object',
    default: { $ref: '#' },
  };
  assert.deepEqual(appSchema(JSON.stringify(given), 'm.input'), {
    schema: { type: 'object', default: { $ref: '#' } },
    components: {},
  });
});

test('one that refers to itself or to its $defs becomes components', () => {
  const given = {
    type: 'object',
    properties: {
      $ref: { type: 'string' },
      children: { type: 'array', items: { $ref: '#' } },
      pet: { anyOf: [{ $ref: '#/$defs/Pet~1Dog' }, { $ref: '#/properties/children' }] },
    },
    $defs: { 'Pet/Dog': { properties: { owner: { $ref: '#/$defs/Pet~1Dog/properties/name' }, name: {} } } },
  };
  assert.deepEqual(appSchema(JSON.stringify(given), 'm.input'), {
    schema: { $ref: `${AT}m.input` },
    components: {
      'm.input': {
        type: 'object',
        properties: {
          $ref: { type: 'string' },
          children: { type: 'array', items: { $ref: `${AT}m.input` } },
          pet: { anyOf: [{ $ref: `${AT}m.input.Pet_Dog` }, { $ref: `${AT}m.input/properties/children` }] },
        },
      },
      'm.input.Pet_Dog': {
        properties: { owner: { $ref: `${AT}m.input.Pet_Dog/properties/name` }, name: {} },
      },
    },
  });
});

test('what is no schema, or too deep, is none', () => {
  const deep = `${'{"items":'.repeat(50_000)}{}${'}'.repeat(50_000)}`;
  for (const text of ['', '[]', 'null', '5', deep])
    assert.equal(appSchema(text, 'm'), null, text.slice(0, 20));
});
