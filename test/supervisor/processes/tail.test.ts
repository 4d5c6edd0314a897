import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { printMark } from '../../../protocol/wire/print-mark.js';
import { Tail } from '../../../supervisor/processes/worker-death.js';

test('lastLines returns the last lines that are not empty, with any line ends', () => {
  const tail = new Tail(1000);
  for (const chunk of ['one\ntw', 'o\r\n\n  \n10%\r20%', '\rlast']) tail.push(Buffer.from(chunk));
  assert.deepEqual(tail.lastLines(3), ['10%', '20%', 'last']);
  assert.deepEqual(tail.lastLines(99), ['one', 'two', '10%', '20%', 'last']);
});

test('the lines stand as they were printed, without marks of their calls, whole or cut off by a death', () => {
  const tail = new Tail(1000);
  const mark = '0123456789abcdef';
  const record = `${printMark(mark, 'id', 'error')}words\n${printMark(mark, 'id')}`;
  tail.push(Buffer.from(`${record}${record}${printMark(mark, 'id', 'error').slice(0, -3)}`));
  assert.deepEqual(tail.lastLines(3), ['words', 'words']);
});

test('an empty tail has no lines', () => {
  assert.deepEqual(new Tail(10).lastLines(5), []);
});

test('however it is cut in chunks, a tail keeps exactly the last bytes of what was pushed', () => {
  const chunks = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '\n'), maxLength: 30 }), {
    maxLength: 30,
  });
  fc.assert(
    fc.property(chunks, fc.integer({ min: 1, max: 50 }), (texts, limit) => {
      const tail = new Tail(limit);
      for (const text of texts) tail.push(Buffer.from(text));
      const expected = texts
        .join('')
        .slice(-limit)
        .split('\n')
        .filter((line) => line !== '');
      assert.deepEqual(tail.lastLines(1000), expected);
    }),
  );
});
