/** Returns what it was given: objects as objects, bytes as bytes. */
export function inference(modelInputs) {
  return modelInputs;
}
