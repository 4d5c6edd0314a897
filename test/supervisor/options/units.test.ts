import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  NotAllowed,
  formatBytes,
  formatMs,
  parseBytes,
  parseChoice,
  parseDurationMs,
  parsePositiveMs,
  parseSwitch,
  parseWhole,
} from '../../../supervisor/options/units.js';

type Row = readonly [raw: unknown, value: unknown];

/** For each parser: raw values with their results, and values that are refused with the allowed ones. */
function readsOnly(
  name: string,
  parse: (raw: unknown) => unknown,
  reads: readonly Row[],
  refuses: readonly unknown[],
): void {
  test(`${name} parses valid values`, () => {
    for (const [raw, value] of reads) assert.equal(parse(raw), value, JSON.stringify(raw));
  });
  test(`${name} refuses all others and lists the allowed values`, () => {
    for (const raw of refuses) {
      const isHelpful = (error: unknown): boolean => error instanceof NotAllowed && error.message.length > 4;
      assert.throws(() => parse(raw), isHelpful, JSON.stringify(raw) ?? String(raw));
    }
  });
}

readsOnly(
  'parseDurationMs',
  parseDurationMs,
  [
    ['500ms', 500],
    ['30s', 30_000],
    ['5m', 300_000],
    ['1h', 3_600_000],
    ['1.5m', 90_000],
    ['0.5s', 500],
    [' 2 s ', 2000],
    ['10S', 10_000],
    ['0', 0],
    [0, 0],
    [250, 250],
    ['576h', 2_073_600_000],
  ],
  [
    '30',
    '',
    ' ',
    's',
    '5 parsecs',
    '-5s',
    '1e3s',
    '5s5',
    '.5s',
    '600h',
    -1,
    NaN,
    Infinity,
    2 ** 31,
    true,
    null,
    undefined,
    {},
    ['5s'],
  ],
);

readsOnly(
  'parsePositiveMs',
  parsePositiveMs,
  [
    ['1ms', 1],
    ['0.5ms', 0.5],
    ['5m', 300_000],
    [1, 1],
  ],
  ['0', '0s', '0.0ms', 0, -1, '30', '600h', '', null],
);

readsOnly(
  'parseBytes',
  parseBytes,
  [
    ['10mb', 10_485_760],
    ['512kb', 524_288],
    ['1gb', 1_073_741_824],
    ['7b', 7],
    ['1.5KB', 1536],
    ['100000000', 100_000_000],
    [' 3 mb', 3_145_728],
    ['0.3b', 0],
    [1234, 1234],
    [0, 0],
  ],
  ['', 'mb', '10 mib', '-1', '1_000', '1e6', -1, NaN, Infinity, false, null, undefined, {}],
);

readsOnly(
  'parseWhole',
  (raw) => parseWhole(raw, 1, 64),
  [
    ['1', 1],
    [' 64 ', 64],
    [7, 7],
    ['007', 7],
  ],
  ['0', '65', '1.5', '-1', '+1', '1e1', '', ' ', 'two', 0, 65, 1.5, NaN, null, undefined, true, [1]],
);

readsOnly(
  'parseChoice',
  (raw) => parseChoice(raw, ['stay', 'exit']),
  [
    ['stay', 'stay'],
    ['exit', 'exit'],
  ],
  ['Stay', '', 'sta', null, 1],
);

readsOnly(
  'parseSwitch',
  parseSwitch,
  [
    [true, true],
    ['true', true],
    ['1', true],
    [false, false],
    ['false', false],
    ['0', false],
  ],
  ['yes', 'on', '', 1, 0, null, undefined],
);

test('sizes and durations are formatted for a sentence', () => {
  const sizes = [0, 1023, 1024, 1536, 100_000_000, 1024 ** 3].map(formatBytes);
  assert.deepEqual(sizes, ['0 bytes', '1023 bytes', '1 KB', '1.5 KB', '95.4 MB', '1 GB']);
  const durations = [0, 0.4, 999, 1000, 1234, 119_999, 120_000, 300_000].map(formatMs);
  assert.deepEqual(durations, ['0 ms', '0 ms', '999 ms', '1 s', '1.2 s', '120 s', '2 min', '5 min']);
});
