/** Schemas of inputs and outputs: by examples, and by the tensors of a signature. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  inferSchema,
  listedTensors,
  outputTensors,
  type JsonSchema,
} from '../../../../supervisor/http/openapi/schemas.js';

const NUMBER: JsonSchema = { type: 'number' };
const TEXT: JsonSchema = { type: 'string' };
const list = (items: JsonSchema, size = -1): JsonSchema => ({
  type: 'array',
  items,
  ...(size >= 0 && { minItems: size, maxItems: size }),
});
const open = (properties: Readonly<Record<string, JsonSchema>>): JsonSchema => ({
  type: 'object',
  properties,
  additionalProperties: true,
});

describe('the schema of an example', () => {
  for (const [what, example, schema] of [
    ['a number, which may be no integer', 1, NUMBER],
    ['a text', 'a', TEXT],
    ['null says nothing', null, {}],
    ['rows of numbers', [[1, 2], [3]], list(list(NUMBER))],
    ['an empty list', [], list({})],
    ['a list of several kinds', [1, 'a'], list({})],
    [
      'an object: no property is required, others are allowed',
      { a: 1, b: { c: true } },
      open({ a: NUMBER, b: open({ c: { type: 'boolean' } }) }),
    ],
    [
      'objects in a list: the properties of all',
      [{ a: 1 }, { b: 'x', a: null }],
      list(open({ a: {}, b: TEXT })),
    ],
    [
      'a property with the name of a prototype',
      JSON.parse('{"__proto__":1}'),
      open(JSON.parse('{"__proto__":{"type":"number"}}') as Record<string, JsonSchema>),
    ],
  ] as const)
    test(what, () => assert.deepEqual(JSON.parse(JSON.stringify(inferSchema(example))), schema));

  test('has bounds, whatever the example', () => {
    const deep = JSON.parse('['.repeat(5000) + ']'.repeat(5000)) as unknown;
    assert.ok(JSON.stringify(inferSchema(deep)).length < 1000);
    const wide = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`p${i}`, { q: i }]));
    assert.ok(JSON.stringify(inferSchema(wide)).length < 20_000);
  });
});

describe('the schema of tensors', () => {
  const specs = [
    { name: 'image', datatype: 'FP32', shape: [-1, 2] },
    { name: 'count', datatype: 'INT64', shape: [1] },
    { name: 'flag', datatype: 'BOOL', shape: [] },
    { name: 'names', datatype: 'BYTES', shape: [-1] },
  ];

  test('inputs, and outputs of a model without code, are nested lists, all of them required', () => {
    assert.deepEqual(listedTensors(specs), {
      type: 'object',
      properties: {
        image: list(list(NUMBER, 2)),
        count: list({ type: 'integer' }, 1),
        flag: { type: 'boolean' },
        names: list(TEXT),
      },
      required: ['image', 'count', 'flag', 'names'],
    });
  });

  test('outputs may also be flat, or tensors', () => {
    const { anyOf = [] } = outputTensors(specs).properties?.['image'] ?? {};
    assert.deepEqual(anyOf.slice(0, 2), [list(list(NUMBER, 2)), list(NUMBER)]);
    assert.deepEqual(anyOf[2]?.required, ['datatype', 'shape', 'data']);
    assert.ok(anyOf[2].properties?.['datatype']?.enum?.includes('FP32'));
  });

  test('no tensors say nothing', () => assert.deepEqual([listedTensors([]), outputTensors([])], [{}, {}]));

  test('a shape beyond any tensor is not described', () => {
    const shape = Array<number>(100_000).fill(1);
    assert.deepEqual(listedTensors([{ name: 'x', datatype: 'FP32', shape }]).properties, { x: {} });
  });
});
