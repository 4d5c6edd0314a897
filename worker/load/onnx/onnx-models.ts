/** Loads ONNX models; what that needs is loaded only in a worker that does it. */
import { AppLoadError } from '../explain-load-error.js';
import type { Loader } from '../loader.js';

export const onnxModels: Loader = {
  extensions: ['.onnx'],

  async load(file) {
    const { exportsOfModel } = await import('./exports-of-model.js');
    return {
      candidates: [await exportsOfModel(file, process.env)],
      explainMissing: () => new AppLoadError(`${file.app}: an ONNX model has no handlers to choose from.`),
    };
  },
};
