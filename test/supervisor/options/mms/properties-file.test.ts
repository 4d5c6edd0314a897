/** The syntax of `config.properties`, and line numbers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readProperties } from '../../../../supervisor/options/mms/read-config.js';

const ROWS: readonly (readonly [
  what: string,
  text: string,
  read: readonly (readonly [string, string, number])[],
])[] = [
  ['an empty file', '', []],
  [
    'three ways to separate',
    'a=1\nb: 2\nc 3\n',
    [
      ['a', '1', 1],
      ['b', '2', 2],
      ['c', '3', 3],
    ],
  ],
  ['comments and empty lines', '# one\n\n! two\n  a = 1', [['a', '1', 4]]],
  [
    'line ends of Windows',
    'a=1\r\n\r\nb=2\r\n',
    [
      ['a', '1', 1],
      ['b', '2', 3],
    ],
  ],
  [
    'line ends of old',
    'a=1\r\rb=2',
    [
      ['a', '1', 1],
      ['b', '2', 3],
    ],
  ],
  [
    'a line with a continuation',
    'a=1,\\\n   2\nb=3',
    [
      ['a', '1,2', 1],
      ['b', '3', 3],
    ],
  ],
  [
    'spaces after a value',
    'a=1  \nb=\t2\t',
    [
      ['a', '1', 1],
      ['b', '2', 2],
    ],
  ],
  ['a value with separators in it', 'a=http://127.0.0.1:8080?x=y', [['a', 'http://127.0.0.1:8080?x=y', 1]]],
  ['escapes', 'a\\:b=c\\u00e9\\\\d', [['a:b', 'cé\\d', 1]]],
  [
    'a key without a value',
    'a\nb=',
    [
      ['a', '', 1],
      ['b', '', 2],
    ],
  ],
  [
    'a repeated key',
    'a=1\na=2',
    [
      ['a', '1', 1],
      ['a', '2', 2],
    ],
  ],
  ['a byte order mark', '\ufeffa=1', [['a', '1', 1]]],
  [
    'names of properties of every object',
    '__proto__=1\nconstructor=2',
    [
      ['__proto__', '1', 1],
      ['constructor', '2', 2],
    ],
  ],
];

for (const [what, text, read] of ROWS)
  test(`${what}: keys, values and lines`, () => {
    const found = readProperties(Buffer.from(text), 'f').map(({ key, text: value, place }) => [
      key,
      value,
      place,
    ]);
    assert.deepEqual(
      found,
      read.map(([key, value, line]) => [key, value, `f line ${line}: ${key}`]),
    );
  });

test('a file that is not UTF-8 is read as Latin-1', () => {
  const [property] = readProperties(Buffer.from('a=caf\xe9', 'latin1'), 'f');
  assert.equal(property?.text, 'café');
});
