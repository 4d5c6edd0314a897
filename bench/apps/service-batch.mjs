/** A custom service that keeps its thread busy for 5 ms, and 0.2 ms more for each item of a batch. */
const [RUN_MS, ITEM_MS] = [5, 0.2];

export function handle(data) {
  if (data === null) return null;
  const endMs = performance.now() + RUN_MS + ITEM_MS * data.length;
  while (performance.now() < endMs);
  return data.map(() => 'done');
}
