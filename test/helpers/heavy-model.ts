/** A model, of 16 MiB unless it is made larger, with small inputs and outputs, so that sharing its weights is worth it. */
import type { OnnxModel } from './onnx-model.js';

const SMALL = 64;
const LARGE = 32_768;

/** `y = x · a · b`, with 64 numbers in a row of `x` and of `y`. Another `seed` gives other weights; `width` is that of `a`. */
export function heavyModel(seed = 1, width = LARGE): OnnxModel {
  return {
    inputs: [{ name: 'x', type: 'FP32', shape: ['n', SMALL] }],
    outputs: [{ name: 'y', type: 'FP32', shape: ['n', SMALL] }],
    nodes: [
      { op: 'MatMul', inputs: ['x', 'a'], outputs: ['h'] },
      { op: 'MatMul', inputs: ['h', 'b'], outputs: ['y'] },
    ],
    weights: [
      { name: 'a', type: 'FP32', shape: [SMALL, width], bytes: weights(seed, width) },
      { name: 'b', type: 'FP32', shape: [width, SMALL], bytes: weights(seed + 1, width) },
    ],
  };
}

function weights(seed: number, width: number): Uint8Array {
  const values = Float32Array.from({ length: SMALL * width }, (_, i) => ((i * 7919 + seed) % 1009) / 1e5);
  return new Uint8Array(values.buffer);
}

export const HEAVY_ROW: readonly number[] = Array.from({ length: SMALL }, (_, i) => (i % 7) - 3);
