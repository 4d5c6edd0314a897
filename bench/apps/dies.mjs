/** A model that says who runs it, after as much computing as it is told: it is to be killed meanwhile. */
export function inference({ busyMs }) {
  const endAtMs = performance.now() + busyMs;
  while (performance.now() < endAtMs);
  return { pid: process.pid };
}
