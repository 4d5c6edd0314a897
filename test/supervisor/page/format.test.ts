/** Numbers as the page writes them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { age, bytes, count, duration, plural } from '../../../supervisor/page/parts/format.js';

for (const [text, expected] of [
  [bytes(0), '0 B'],
  [bytes(999), '999 B'],
  [bytes(1000), '1.0 kB'],
  [bytes(12_345), '12 kB'],
  [bytes(999_600), '1.0 MB'],
  [bytes(2_400_000_000), '2.4 GB'],
  [count(950), '950'],
  [count(1_234), '1.2k'],
  [count(0.25), '0.3'],
  [duration(0), '0 ms'],
  [duration(0.21), '0.2 ms'],
  [duration(23.4), '23 ms'],
  [duration(1_640), '1.6 s'],
  [duration(125_000), '2 m 5 s'],
  [age(600_000), '10 m'],
  [age(12_000_000), '3 h 20 m'],
  [age(356_400_000), '4 d 3 h'],
  [age(-5), '0 s'],
  [plural(1, 'worker'), '1 worker'],
  [plural(0, 'worker'), '0 workers'],
] as const)
  test(`${expected}`, () => assert.equal(text, expected));
