import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { test } from 'node:test';
import { metricLine } from '../../../supervisor/metrics/mms-lines.js';

const AT = new Date(1_700_000_000_999);
const METRIC = {
  kind: 'time',
  name: 'Decode',
  value: 1.5,
  unit: 'ms',
  dimensions: '',
  requestIds: [],
} as const;

for (const [what, changes, line] of [
  [
    'of two requests',
    { dimensions: 'ModelName\ndigits\nLevel\nModel', requestIds: ['a', 'b'] },
    'Decode.Milliseconds:1.5|#ModelName:digits,Level:Model|#hostname:HOST,requestID:a,b,timestamp:1700000000',
  ],
  ['without a request', {}, 'Decode.Milliseconds:1.5|#|#hostname:HOST,timestamp:1700000000'],
  ['without a unit', { unit: '' }, 'Decode.unit:1.5|#|#hostname:HOST,timestamp:1700000000'],
  ['in kilobytes', { unit: 'kB' }, 'Decode.Kilobytes:1.5|#|#hostname:HOST,timestamp:1700000000'],
  ['with an unknown unit', { unit: 'Tokens' }, 'Decode.Tokens:1.5|#|#hostname:HOST,timestamp:1700000000'],
  [
    'that is an error',
    { kind: 'error', value: 'gone', unit: '', dimensions: 'Level\nError' },
    'Decode.unit:gone|#Level:Error|#hostname:HOST,timestamp:1700000000',
  ],
] as const) {
  test(`a metric ${what} is one line of text`, () => {
    assert.equal(metricLine({ ...METRIC, ...changes }, AT), line.replace('HOST', hostname()));
  });
}
