/** A model that computes for the time in its input and answers with its process: a bench kills it meanwhile. */
export function inference({ busyMs }) {
  const endAtMs = performance.now() + busyMs;
  while (performance.now() < endAtMs);
  return { pid: process.pid };
}
