import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matchesPattern } from '../../../../../supervisor/http/dialects/mms/management-views.js';

const ROWS: readonly (readonly [name: string, pattern: string, matches: boolean])[] = [
  ['digits', '*', true],
  ['digits', 'digits', true],
  ['digits', 'digit', false],
  ['digits', 'd*s', true],
  ['digits', '*i?s', true],
  ['digits', 'd?gits', true],
  ['digits', '??????', true],
  ['digits', '?????', false],
  ['digits', '*x*', false],
  ['digits', '**gi**', true],
  ['digits.v2', 'digits.*', true],
  ['digitsxv2', 'digits.*', false],
  ['a', '', false],
  ['', '*', true],
];
for (const [name, pattern, matches] of ROWS)
  test(`${pattern} ${matches ? 'matches' : 'does not match'} ${name}`, () =>
    assert.equal(matchesPattern(name, pattern), matches));

test('matching takes at most the length of the pattern times that of the name', () => {
  let looks = 0;
  const letters = Array<string>(128).fill('a');
  const get = (target: object, key: string | symbol): unknown => {
    looks += 1;
    return Reflect.get(target, key);
  };
  const name = new Proxy(letters, { get }) as unknown as string; // only its length and its characters are read
  assert.equal(matchesPattern(name, `${'a*'.repeat(64)}b`), false);
  assert.ok(looks < 128 * 129 * 2, `${looks} looks`);
});
