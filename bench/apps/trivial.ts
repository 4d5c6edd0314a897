/** The smallest TypeScript app. */
export function inference(modelInputs: { prompt: string }): { length: number } {
  return { length: modelInputs.prompt.length };
}
