/** Explains the error of a run whose inputs contradict each other. */
import { ServeError } from '../../../protocol/errors.js';
import { shown } from '../../api/tensor.js';
import type { Onnxruntime } from './onnxruntime.js';
import type { Tensors } from './rows.js';

/**
 * A SERVE_BAD_BODY if two dimensions of the same symbol have different sizes, else what was thrown. Looked for only after
 * an error, because exporters also write one symbol for dimensions that may differ.
 */
export function explainRunError(
  thrown: unknown,
  tensors: Tensors,
  metadata: Onnxruntime.InferenceSession['inputMetadata'],
): unknown {
  const sizes = new Map<string, { readonly name: string; readonly size: number }>();
  for (const input of metadata) {
    if (!input.isTensor) continue;
    for (const [i, symbol] of input.shape.entries()) {
      const size = tensors[input.name]?.shape[i];
      if (typeof symbol !== 'string' || symbol === '' || size === undefined) continue;
      const before = sizes.get(symbol);
      if (before === undefined) sizes.set(symbol, { name: input.name, size });
      else if (before.size !== size)
        return new ServeError(
          'SERVE_BAD_BODY',
          `Input ${shown(input.name)}: its dimension ${shown(symbol)} is ${size}, but that of ${shown(before.name)} is ${before.size}; the model wants them to be the same.`,
          { cause: thrown },
        );
    }
  }
  return thrown;
}
