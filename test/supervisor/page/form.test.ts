/** Forms from an app's signature or example, and the JSON that they stand for. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldsOf, fieldValues, textOfForm } from '../../../supervisor/page/try/draft.js';
import { issuesIn } from '../../../supervisor/page/try/schema-fields.js';
import { firstInput, isJsonOnly } from '../../../supervisor/page/try/targets.js';
import { liveDescription, liveRoute } from '../../helpers/live-data.js';

const EXAMPLE = '{"prompt":"a \\"cat\\"","steps":20,"safe":true,"size":[512,512],"mask":null}';
const FIELDS = fieldsOf(null, '', EXAMPLE) ?? [];
const SIGNATURE = {
  inputs: [
    { name: 'x', datatype: 'FP32', shape: [-1, 2] },
    { name: 'id', datatype: 'INT64', shape: [] },
  ],
  outputs: [],
};

test("the example's shape makes the fields", () => {
  assert.deepEqual(
    FIELDS.map(({ name, kind }) => [name, kind]),
    [
      ['prompt', 'text'],
      ['steps', 'number'],
      ['safe', 'boolean'],
      ['size', 'json'],
      ['mask', 'json'],
    ],
  );
});

const SCHEMA = {
  type: 'object',
  properties: {
    prompt: { type: 'string' },
    style: { enum: ['oil', 'ink'], type: 'string', default: 'oil' },
    steps: { $ref: '#/$defs/Steps', default: 10 },
    seed: { anyOf: [{ type: 'integer' }, { type: 'null' }], default: null },
    safe: { type: 'boolean' },
    size: { type: 'array' },
    any: true,
    gone: { $ref: '#/$defs/None' },
  },
  required: ['prompt', 'size'],
  $defs: { Steps: { type: 'integer' } },
};

test("the schema's properties make the fields, whatever the example has", () => {
  assert.deepEqual(
    fieldsOf(null, JSON.stringify(SCHEMA), EXAMPLE)?.map(({ name, kind, hint, isOptional }) => [
      name,
      kind,
      hint,
      isOptional,
    ]),
    [
      ['prompt', 'text', 'text', false],
      ['style', 'text', 'oil | ink, default "oil"', true],
      ['steps', 'number', 'number, default 10', true],
      ['seed', 'number', 'number, optional', true],
      ['safe', 'boolean', 'boolean, optional', true],
      ['size', 'json', 'json', false],
      ['any', 'json', 'json, optional', true],
      ['gone', 'json', 'json, optional', true],
    ],
  );
  const tree = {
    $ref: '#/$defs/Tree',
    $defs: { Tree: { properties: { children: { items: { $ref: '#' } } } } },
  };
  assert.deepEqual(
    fieldsOf(null, JSON.stringify(tree), '')?.map(({ name }) => name),
    ['children'],
  );
});

for (const schema of ['{"type":"string"}', '{"$ref":"#"}', 'true', 'no JSON'])
  test(`the schema ${schema} makes no form, and the example does`, () => {
    assert.deepEqual(fieldsOf(null, schema, EXAMPLE), FIELDS);
  });

test('a text that may be left out is, while it is empty', () => {
  const fields = fieldsOf(null, JSON.stringify(SCHEMA), '') ?? [];
  assert.equal(textOfForm(fields, { prompt: '', style: '', steps: '' }).text, '{ "prompt": "" }');
});

test('wrong values stand at the field that they begin at', () => {
  const issues = [
    { path: ['size', 0], message: 'too large' },
    { path: ['size', 1], message: 'too small' },
    { path: ['prompt'], message: 'missing' },
    { path: [], message: 'of all' },
  ];
  assert.deepEqual(issuesIn(JSON.stringify({ error: { issues } })), {
    size: '0: too large; 1: too small',
    prompt: 'missing',
  });
  for (const answer of ['', 'null', '[1]', '{"error":"text"}', '{"error":{"code":"SERVE_X"}}'])
    assert.deepEqual(issuesIn(answer), {});
});

test('the signature makes the fields, if there is one', () => {
  assert.deepEqual(fieldsOf(SIGNATURE, '', EXAMPLE), [
    { name: 'x', kind: 'json', hint: 'FP32 [any, 2]', isOptional: false },
    { name: 'id', kind: 'json', hint: 'INT64', isOptional: false },
  ]);
});

for (const example of ['', '[1,2]', '"text"', '{}', '{"broken'])
  test(`${example === '' ? 'no example' : `the example ${example}`} makes no form`, () => {
    assert.equal(fieldsOf(null, '', example), null);
  });

test('filling the form with the JSON and reading it back gives the same value', () => {
  const { text } = textOfForm(FIELDS, fieldValues(FIELDS, EXAMPLE));
  assert.deepEqual(JSON.parse(text ?? ''), JSON.parse(EXAMPLE));
});

test('a number keeps its digits, an empty field is left out, an empty text is not', () => {
  const { text } = textOfForm(FIELDS, {
    prompt: '',
    steps: '12345678901234567890',
    safe: '',
    size: '',
    mask: ' ',
  });
  assert.equal(text, '{ "prompt": "", "steps": 12345678901234567890 }');
});

for (const [name, value] of [
  ['steps', 'ten'],
  ['steps', '"1"'],
  ['size', '[512'],
  ['mask', '1, 2'],
] as const)
  test(`${value} in the field ${name} is a mistake`, () => {
    const { text, problems } = textOfForm(FIELDS, { ...fieldValues(FIELDS, EXAMPLE), [name]: value });
    assert.equal(text, null);
    assert.deepEqual(Object.keys(problems), [name]);
  });

const path = (dialect: string) => ({ path: '/', dialect, isDeprecated: false });
const described = liveDescription({
  example: '{"prompt":"hi"}',
  routes: [liveRoute(), liveRoute({ path: '/other' })],
});

for (const [title, description, route, dialect, expected] of [
  ['the example', described, described.routes[0], 'banana', { prompt: 'hi' }],
  ['nothing for a route without an example', described, described.routes[1], 'banana', {}],
  [
    'the example inside the object of the gateway',
    described,
    described.routes[0],
    'gateway',
    { modelInputs: { prompt: 'hi' } },
  ],
  [
    'zeros of a signature',
    liveDescription({ signature: SIGNATURE }),
    liveRoute(),
    'banana',
    { x: [[0, 0]], id: 0 },
  ],
  [
    'tensors for the Open Inference Protocol, with the data of the example',
    liveDescription({ signature: SIGNATURE, example: '{"x":[[1,2],[3,4]]}' }),
    liveRoute(),
    'open-inference',
    {
      inputs: [
        {
          name: 'x',
          datatype: 'FP32',
          shape: [2, 2],
          data: [
            [1, 2],
            [3, 4],
          ],
        },
        { name: 'id', datatype: 'INT64', shape: [], data: 0 },
      ],
    },
  ],
] as const)
  test(`the first input is ${title}`, () => {
    assert.ok(route !== undefined);
    assert.deepEqual(JSON.parse(firstInput(description, route, path(dialect))), expected);
  });

for (const [input, dialect, expected] of [
  ['any', 'banana', false],
  ['any', 'mms', false],
  ['json', 'banana', true],
  ['any', 'gateway', true],
  ['any', 'open-inference', true],
] as const)
  test(`a route of ${input} at a path of ${dialect} takes ${expected ? 'JSON only' : 'files too'}`, () => {
    assert.equal(isJsonOnly(liveRoute({ input }), path(dialect)), expected);
  });
