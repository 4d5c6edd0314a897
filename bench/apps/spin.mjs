/** A model that keeps its thread busy for SPIN_MS. */
const SPIN_MS = Number(process.env.SPIN_MS ?? 1);

export function inference() {
  const endMs = performance.now() + SPIN_MS;
  while (performance.now() < endMs);
  return null;
}
