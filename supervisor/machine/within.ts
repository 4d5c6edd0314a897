/** Waiting that has an end. */

/** What comes of it; null if it takes longer. */
export async function within<T>(limitMs: number, coming: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), limitMs).unref(); // a server that was killed waits for nobody
  });
  const first = await Promise.race([coming, late]);
  clearTimeout(timer);
  return first;
}
