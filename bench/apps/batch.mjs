/** A model that keeps its thread busy for RUN_MS, and ITEM_MS more for each input of a batch. */
const RUN_MS = Number(process.env.RUN_MS ?? 5);
const ITEM_MS = Number(process.env.ITEM_MS ?? 0.2);

export function inferenceBatch(inputs) {
  const endMs = performance.now() + RUN_MS + ITEM_MS * inputs.length;
  while (performance.now() < endMs);
  return inputs.map(() => null);
}
