/** A model of 16 MiB with small inputs and outputs, so that sharing its weights is worth it. */
import type { OnnxModel } from './onnx-model.js';

const SMALL = 64;
const LARGE = 32_768;

/** `y = x · a · b`, with 64 numbers in a row of `x` and of `y`. Another `seed` gives other weights. */
export function heavyModel(seed = 1): OnnxModel {
  return {
    inputs: [{ name: 'x', type: 'FP32', shape: ['n', SMALL] }],
    outputs: [{ name: 'y', type: 'FP32', shape: ['n', SMALL] }],
    nodes: [
      { op: 'MatMul', inputs: ['x', 'a'], outputs: ['h'] },
      { op: 'MatMul', inputs: ['h', 'b'], outputs: ['y'] },
    ],
    weights: [
      { name: 'a', type: 'FP32', shape: [SMALL, LARGE], bytes: weights(seed) },
      { name: 'b', type: 'FP32', shape: [LARGE, SMALL], bytes: weights(seed + 1) },
    ],
  };
}

function weights(seed: number): Uint8Array {
  const values = Float32Array.from({ length: SMALL * LARGE }, (_, i) => ((i * 7919 + seed) % 1009) / 1e5);
  return new Uint8Array(values.buffer);
}

export const HEAVY_ROW: readonly number[] = Array.from({ length: SMALL }, (_, i) => (i % 7) - 3);
