/** The lines of the log as the page keeps and filters them, and the words of an error. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressOf, logsAddress } from '../../../supervisor/page/app/address.js';
import {
  filterLines,
  filterOf,
  MAX_LINES,
  NO_FILTER,
  valuesOf,
  withLines,
  type LineFilter,
} from '../../../supervisor/page/logs/logs-view.js';
import { failureTitle } from '../../../supervisor/page/watch/words.js';
import type { LiveLine } from '../../../supervisor/status/live-types.js';

const line = (text: string, changes: Partial<LiveLine> = {}): LiveLine => {
  return { at: 0, level: 'info', model: '', worker: null, requestId: '', text, ...changes };
};

const LINES = withLines([], {
  missed: false,
  lines: [
    line('it serves'),
    line('loaded', { level: 'stdout', model: 'digits', worker: 0 }),
    line('TypeError: no', { level: 'error', model: 'digits', worker: 10, requestId: 'r1' }),
    line('slow', { level: 'warn', model: 'words', worker: 2, requestId: 'r2' }),
    line('worker died while running r1', { level: 'stderr', model: 'words', worker: 2 }),
  ],
});

for (const [title, filter, expected] of [
  ['no filter', {}, [1, 2, 3, 4, 5]],
  ['errors', { level: 'errors' }, [3]],
  ['warnings and errors', { level: 'warnings' }, [3, 4]],
  ['prints', { level: 'prints' }, [2, 5]],
  ['a model', { model: 'digits' }, [2, 3]],
  ['a worker of a model', { model: 'words', worker: '2' }, [4, 5]],
  ['a request, also where a line only names it', { request: 'r1' }, [3, 5]],
  ['words', { text: 'Worker !digits' }, [5]],
] as [string, Partial<LineFilter>, number[]][])
  test(`filtered by ${title}`, () => {
    const shown = filterLines(LINES, { ...NO_FILTER, ...filter });
    assert.deepEqual(
      shown.map(({ number }) => number),
      expected,
    );
  });

test('the page keeps the last 2,000 lines, and marks where some are missing', () => {
  const lines = withLines(LINES, {
    missed: true,
    lines: Array.from({ length: MAX_LINES - 1 }, () => line('x')),
  });
  assert.deepEqual([lines.length, lines[0]?.number, lines[1]?.isAfterGap], [MAX_LINES, 5, true]);
});

test('the values of a column are in order, without the empty one', () => {
  assert.deepEqual(
    [valuesOf(LINES, 'worker'), valuesOf(LINES, 'model')],
    [
      ['0', '2', '10'],
      ['digits', 'words'],
    ],
  );
});

test('the address of the logs names what is asked for', () => {
  const { view, wishes } = addressOf(logsAddress({ request: 'a b/#?' }));
  assert.deepEqual([view, wishes.get('request')], ['logs', 'a b/#?']);
  assert.deepEqual([addressOf('#watch').view, addressOf('').view], ['watch', 'try']);
});

for (const [language, detail, title] of [
  ['JavaScript', 'TypeError: no\n    at f (app.ts:1)\n  caused by: Error: x', 'TypeError: no'],
  [
    'Python',
    'Traceback (most recent call last):\n  File "app.py", line 3, in f\n    1 / 0\nZeroDivisionError: division by zero',
    'ZeroDivisionError: division by zero',
  ],
  ['neither', '', 'The model failed on this call.'],
] as const)
  test(`an error of ${language} is named by its type and message`, () => {
    assert.equal(failureTitle({ message: 'The model failed on this call.', detail }), title);
  });

test('of an address only the names of a model, a worker and a request count', () => {
  const wishes = new URLSearchParams('model=digits&worker=0&level=constructor&text=x&other=y');
  assert.deepEqual(filterOf(wishes), { ...NO_FILTER, model: 'digits', worker: '0' });
  assert.deepEqual(
    filterLines(LINES, filterOf(wishes)).map(({ number }) => number),
    [2],
  );
});
