import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onnxSources } from '../../../../supervisor/runtimes/onnx/onnx.js';
import { identity, onnxBytes } from '../../../helpers/onnx-model.js';

function textWith(...locations: readonly string[]): string {
  const weights = locations.map((location, i) => {
    const external = { location, offset: 1000, length: 8 };
    return { name: `w${i}`, type: 'FP32' as const, shape: [2], bytes: null, external };
  });
  return onnxBytes({ ...identity('FP32'), weights }).toString();
}

const LONG = `${'w'.repeat(90)}.bin`;

const ROWS: readonly (readonly [locations: readonly string[], files: readonly string[]])[] = [
  [[], []],
  [['w.bin'], ['nets/w.bin']],
  [
    ['w.bin', 'parts/b', 'w.bin'],
    ['nets/w.bin', 'nets/parts/b'],
  ],
  [['gewichte-größer.bin'], ['nets/gewichte-größer.bin']],
  [[LONG], [`nets/${LONG}`]],
];

for (const [locations, files] of ROWS)
  test(`a model with weights in ${locations.join(', ') || 'itself'} loads those, and files of the usual names`, () => {
    assert.deepEqual(onnxSources.localImports('nets/m.onnx', textWith(...locations)), [
      ...files,
      'nets/m.onnx.data',
      'nets/m.onnx_data',
      'nets/m.data',
      'nets/m.bin',
      'nets/m.example.json',
    ]);
  });
