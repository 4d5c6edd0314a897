import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PRINT_MARK_END, printMark, printMarkPrefix } from '../../../protocol/wire/print-mark.js';

test('a print mark is US, mark, space, request id, US', () => {
  assert.equal(printMark('k3j9', 'req-1'), '\x1fk3j9 req-1\x1f');
  assert.equal(printMark('k3j9', ''), '\x1fk3j9 \x1f');
});

test('a print mark starts with its prefix and ends with the end byte', () => {
  const mark = printMark('k3j9', 'req-1');
  assert.ok(mark.startsWith(printMarkPrefix('k3j9')));
  assert.equal(mark.charCodeAt(mark.length - 1), PRINT_MARK_END);
});
