/** A model that does nothing: what remains is the cost of serving. */
export function inference(modelInputs) {
  return { prompt: modelInputs.prompt, length: modelInputs.prompt.length };
}
