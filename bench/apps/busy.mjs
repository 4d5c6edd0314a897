/** A model that computes for 10 ms: the thread is not free. */
export function inference() {
  const endAtMs = performance.now() + 10;
  while (performance.now() < endAtMs);
  return { busy: true };
}
