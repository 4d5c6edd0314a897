/** The invalid JSON objects that clients of Multi Model Server write. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readLenientObject } from '../../../../../supervisor/http/dialects/mms/lenient-object.js';

const READ: readonly (readonly [text: string, members: Readonly<Record<string, string | null>>])[] = [
  ['{}', {}],
  [' { } ', {}],
  [`{'a':'b'}`, { a: 'b' }],
  [`{"a":"b",}`, { a: 'b' }],
  [`{a:b,c:1,d:true,e:null,f:'null'}`, { a: 'b', c: '1', d: 'true', e: null, f: 'null' }],
  [`{'it\\'s': "a \\"b\\" \\u0041\\n/"}`, { "it's": 'a "b" A\n/' }],
  [`{"a": 'x"y', 'b': "x'y"}`, { a: 'x"y', b: "x'y" }],
  [`{a:1,a:2}`, { a: '2' }],
  [`{"url": 'http://h/x.mar?a=b'}`, { url: 'http://h/x.mar?a=b' }],
  [`{__proto__: 1}`, JSON.parse('{"__proto__":"1"}') as Record<string, string>],
];
for (const [text, members] of READ)
  test(`${text} is read`, () =>
    assert.deepEqual([...(readLenientObject(text) ?? [])], Object.entries(members)));

for (const text of [
  '',
  '{',
  '[]',
  '{a}',
  '{a:}',
  '{a:1',
  '{a:1}}',
  '{a:1 b:2}',
  '{a:{}}',
  `{'a:1}`,
  '{,}',
  '1',
])
  test(`${text} is refused`, () => assert.equal(readLenientObject(text), null));
