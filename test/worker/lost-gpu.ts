/** The error of ONNX Runtime for a lost GPU, created in a file of the package that called its native code. */
export function lostGpu(): Error {
  const error = new Error('CUDA failure 700: an illegal memory access was encountered ; GPU=0');
  error.stack = `Error: ${error.message}\n    at run (/app/node_modules/onnxruntime-node/dist/backend.js:117:108)`;
  return error;
}
